//! Counts the requests that are under way.

use ::metrics::Gauge;
use pagebucket_model::metric::UNDER_WAY;

use super::rate::Class;

/// How many requests are under way, by what they count as.
pub(crate) struct Gauges {
    appends: Gauge,
    reads: Gauge,
    streams: Gauge,
}

/// A request that is under way until this is dropped.
pub(crate) struct UnderWay(Gauge);

impl Default for Gauges {
    fn default() -> Self {
        let of = |class: Class| metrics::gauge!(UNDER_WAY, "class" => class.name());
        Self { appends: of(Class::Appends), reads: of(Class::Reads), streams: of(Class::Streams) }
    }
}

impl Gauges {
    /// Counts a request of this class.
    pub(crate) fn count(&self, class: Class) -> UnderWay {
        let gauge = match class {
            Class::Appends => &self.appends,
            Class::Reads | Class::SignIn => &self.reads,
            Class::Streams => &self.streams,
        };
        gauge.increment(1);
        UnderWay(gauge.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
