//! The bodies of a connection's requests, which are read as their frames come.
//!
//! h2 keeps each frame that was not read, at hundreds of bytes for each, and ends the whole connection when
//! many small ones wait. So the connection reads all frames at once, also of bodies that nothing takes at the
//! moment, and copies them into one buffer for each body. A client gets a new window only for what was taken
//! of its body: the window bounds the buffer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::body::{Body, Bytes, HttpBody};
use h2::RecvStream;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::http1_answer::PIECE;

/// The bodies of a connection that may still get frames.
#[derive(Default)]
pub(crate) struct Bodies(Vec<Arc<Mutex<Incoming>>>);

/// A body that comes in.
struct Incoming {
    /// Nothing after the request has dropped it.
    stream: Option<RecvStream>,
    /// What was not taken.
    buffer: Vec<u8>,
    /// Whether it came to its end, once it has ended.
    end: Option<Result<(), h2::Error>>,
    /// What waits for more.
    reader: Option<Waker>,
}

/// The body of a request.
struct RequestBody {
    incoming: Arc<Mutex<Incoming>>,
    /// The beginning of what was not taken.
    ready: Bytes,
    /// Bytes that are not taken yet, if the head of the request says how many it has.
    left: Option<u64>,
}

impl Bodies {
    /// The body that comes on this stream, of `length` bytes if the head of its request says so.
    pub(crate) fn open(&mut self, stream: RecvStream, length: Option<u64>) -> Body {
        if stream.is_end_stream() {
            return Body::empty();
        }
        let incoming = Incoming { stream: Some(stream), buffer: Vec::new(), end: None, reader: None };
        let incoming = Arc::new(Mutex::new(incoming));
        self.0.push(Arc::clone(&incoming));
        Body::new(RequestBody { incoming, ready: Bytes::new(), left: length })
    }

    /// Reads all frames that have come. To be called whenever the connection may have read some.
    pub(crate) fn read(&mut self, context: &mut Context<'_>) {
        self.0.retain(|incoming| incoming.lock().read(context));
    }
}

impl Incoming {
    /// Returns whether there may be more frames.
    fn read(&mut self, context: &mut Context<'_>) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        while let Poll::Ready(frame) = stream.poll_data(context) {
            match frame {
                Some(Ok(data)) => self.buffer.extend_from_slice(&data),
                Some(Err(error)) => self.end = Some(Err(error)),
                None => self.end = Some(Ok(())),
            }
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
            if self.end.is_some() {
                return false;
            }
        }
        true
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let Self { incoming, ready, left } = &mut *self;
        let mut incoming = incoming.lock();
        if ready.is_empty() {
            *ready = std::mem::take(&mut incoming.buffer).into();
        }
        if !ready.is_empty() {
            let piece = ready.split_to(ready.len().min(PIECE));
            if let Some(stream) = &mut incoming.stream {
                // It fails only if the stream has ended: then there is no window.
                let _ = stream.flow_control().release_capacity(piece.len());
            }
            *left = left.map(|left| left.saturating_sub(piece.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match incoming.end.replace(Ok(())) {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                incoming.end = None;
                incoming.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let incoming = self.incoming.lock();
        self.ready.is_empty() && incoming.buffer.is_empty() && matches!(incoming.end, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RequestBody {
    /// The client learns that no more of the body is wanted when the request is answered.
    fn drop(&mut self) {
        self.incoming.lock().stream = None;
    }
}
