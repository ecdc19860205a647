//! The bodies: bounded, timed, JSON, and parsed with all their faults.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};

use super::new_views::MOST_VIEWS;
use crate::domain::{
    DraftError, PageView, Preallocation, parse_preallocation, parse_views, parse_views_by_line,
};
use crate::http::body::{JSON, expect, read};
use crate::http::problem::{Kind, Problem};
use crate::http::{Api, uploads};

/// What is to be counted: at least one view.
pub struct ViewsBody(pub Vec<PageView>);

impl FromRequest<Arc<Api>> for ViewsBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let media_type = expect(request.headers(), &[JSON, uploads::MEDIA_TYPE])?;
        let bytes = read(request.into_body(), api.limits).await?;
        // When all of it is here: a slow body is of the moment at which it ended.
        let now = api.clock.now();
        if media_type == uploads::MEDIA_TYPE {
            let views = parse_views_by_line(&bytes, now);
            return views.map(Self).map_err(|faults| Problem::invalid_views(&faults));
        }
        parse_views(&bytes, MOST_VIEWS, now).map(Self).map_err(refused)
    }
}

/// Which hour is to be made.
pub struct PreallocationBody(pub Preallocation);

impl FromRequest<Arc<Api>> for PreallocationBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        expect(request.headers(), &[JSON])?;
        let bytes = read(request.into_body(), api.limits).await?;
        parse_preallocation(&bytes, api.clock.now()).map(Self).map_err(refused)
    }
}

fn refused(error: DraftError) -> Problem {
    match error {
        DraftError::NotJson(error) => Problem::new(Kind::MalformedJson, format!("Not JSON: {error}.")),
        DraftError::Invalid(faults) => Problem::invalid_views(&faults),
    }
}
