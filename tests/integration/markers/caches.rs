//! Pages that instances and clients have in their caches.

use serde_json::Value;

use super::{PATIENCE, Place, SHORT, engine_of, erase, keep, retire_to};
use crate::harness::{ALL, Answer, Client, History, Service, eventually, fill, tests_over};

tests_over![ALL, "markers::caches": a_cached_page_is_forgotten_when_it_is_deleted];

const PAGES: u64 = 30;

async fn a_cached_page_is_forgotten_when_it_is_deleted(history: &'static History) {
    let place = Place::new(history).await;
    let service: Service = place.setup().await.aging(SHORT).start().await;
    fill(&place.database, history, 1, PAGES, 1).await;
    fill(&place.database, history, 2, PAGES, 1).await;
    let client = &service.client;
    let path = |owner: u64, page: u64| history.at(owner, &format!("/pages/{page}"));
    let mut tags = Vec::new();
    for owner in [1, 2] {
        for page in 1..PAGES {
            let answer = client.get(&path(owner, page)).await;
            answer.expect(200);
            tags.push(((owner, page), answer.header("etag").to_owned()));
        }
    }
    let conditional = async |client: &Client, owner: u64, page: u64| -> Answer {
        let tag = &tags.iter().find(|(of, _)| *of == (owner, page)).expect("a page").1;
        let request = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
        client.send(reqwest::Method::GET, &path(owner, page), request).await
    };
    assert_eq!(conditional(client, 1, 2).await.status, 304);
    // Another instance deletes.
    let other = place.store().await;
    retire_to(&place, &other, 1, keep(9), PAGES - 9).await;
    erase(&place, &other, 2).await;
    for (owner, page) in [(1, 1), (1, 2), (1, 20), (2, 1), (2, 2), (2, PAGES - 1)] {
        eventually("a deleted page is answered by no cache", PATIENCE, async || {
            client.get(&path(owner, page)).await.status == 410
        })
        .await;
        assert_eq!(conditional(client, owner, page).await.status, 410, "its tag alone is no answer");
    }
    // What is there is cached and confirmed again.
    assert_eq!(conditional(client, 1, PAGES - 2).await.status, 304);
    let body: Value = client.get(&path(1, PAGES - 2)).await.expect(200);
    assert_eq!(body["page"], PAGES - 2);
    assert!(!engine_of(&other, &place).definition().name.is_empty());
}
