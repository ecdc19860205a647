//! A client of live streams: reads events by the rules of HTML, "Server-sent events".

use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::{Client, History, PATIENCE, http};

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `message` unless the event has a name.
    pub name: String,
    pub data: Value,
}

/// A live stream that has begun.
pub struct Events {
    response: Response,
    text: Vec<u8>,
    /// The last `id`, which resumes the stream.
    pub id: Option<String>,
    /// The last `retry`.
    pub retry: Option<u64>,
}

impl From<Response> for Events {
    fn from(response: Response) -> Self {
        Self { response, text: Vec::new(), id: None, retry: None }
    }
}

impl Events {
    /// Begins a stream of an owner.
    pub async fn of(client: &Client, owner: u64, query: &str, headers: &[(&str, &str)]) -> Self {
        Self::at(client, &client.history.at(owner, &format!("/live{query}")), headers).await
    }

    /// Begins a stream at an address.
    pub async fn at(client: &Client, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = begin_at(client, path, headers).await.expect("an answer");
        assert_eq!(response.status(), 200, "{:?}", response.text().await);
        Self::from(response)
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream has broken off.
    pub async fn try_next(&mut self) -> reqwest::Result<Option<Event>> {
        loop {
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(event) = self.dispatch(std::str::from_utf8(&block).expect("UTF-8")) {
                    return Ok(Some(event));
                }
            }
            match self.response.chunk().await? {
                Some(piece) => self.text.extend_from_slice(&piece),
                None => {
                    assert!(self.text.is_empty(), "half of an event");
                    return Ok(None);
                }
            }
        }
    }

    /// The next event, which has to come.
    pub async fn next(&mut self) -> Event {
        let next = tokio::time::timeout(PATIENCE, self.try_next()).await.expect("an event in time");
        next.expect("no fault").expect("an event")
    }

    /// The end of the stream.
    pub async fn end(&mut self) {
        let next = tokio::time::timeout(PATIENCE, self.try_next()).await.expect("the end in time");
        assert_eq!(next.expect("no fault"), None);
    }

    /// Reads items from `first` until `last`, and checks that none is missing and that the `id`s are theirs.
    pub async fn read(&mut self, history: &History, first: u64, last: u64) -> Vec<Value> {
        let mut items = Vec::new();
        while (items.len() as u64) < last + 1 - first {
            let event = self.next().await;
            assert_eq!(event.name, "message", "{event:?}");
            for item in event.data["items"].as_array().expect("items") {
                assert_eq!(item["seq"], first + items.len() as u64, "{item}");
                assert!(history.shows_what_was_sent(item), "{item}");
                items.push(item.clone());
            }
            assert_eq!(self.id, items.last().map(|item| item["seq"].to_string()));
        }
        items
    }

    /// The event that a block of lines makes, if it has data.
    fn dispatch(&mut self, block: &str) -> Option<Event> {
        let (mut name, mut data) = (None, None);
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (field, value) = line.split_once(':').expect("a field");
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                // A comment.
                "" => {}
                "id" => self.id = Some(value.to_owned()),
                "retry" => self.retry = Some(value.parse().expect("milliseconds")),
                "event" => name = Some(value.to_owned()),
                "data" => data = Some(serde_json::from_str(value).expect("JSON")),
                other => panic!("a field {other}"),
            }
        }
        Some(Event { name: name.unwrap_or_else(|| "message".to_owned()), data: data? })
    }
}

/// Asks for a stream.
pub async fn begin(
    client: &Client,
    owner: u64,
    query: &str,
    headers: &[(&str, &str)],
) -> reqwest::Result<Response> {
    begin_at(client, &client.history.at(owner, &format!("/live{query}")), headers).await
}

/// Asks for the stream at an address.
pub async fn begin_at(client: &Client, path: &str, headers: &[(&str, &str)]) -> reqwest::Result<Response> {
    let http = http().build().expect("a client");
    let request = headers
        .iter()
        .fold(http.get(client.url(path)), |request, (name, value)| request.header(*name, *value));
    request.send().await
}

/// The address of the stream of all owners.
pub fn of_owners(history: &History) -> String {
    format!("/v1/{}/live", history.name)
}

pub async fn follow_owners(client: &Client, last: Option<&str>) -> Events {
    let headers: Vec<_> = last.map(|last| ("Last-Event-ID", last)).into_iter().collect();
    Events::at(client, &of_owners(client.history), &headers).await
}

/// Begins one, and waits for its place.
pub async fn begin_owners(client: &Client) -> (Events, String) {
    let mut events = follow_owners(client, None).await;
    let Event { name, data } = events.next().await;
    assert_eq!((name.as_str(), data), ("position", json!({})));
    let id = events.id.clone().expect("an id");
    (events, id)
}
