//! Owners whose ids are UUIDs: upper and lower case mean the same owner, wherever an owner is named.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Uuid, doc};
use pagebucket_http::OpenParts;
use pagebucket_http::auth::jwt::Settings;
use pagebucket_model::domain::OwnerType;
use serde_json::{Value, json};

use crate::commands::program::{Place, pagebucket, run};
use crate::harness::differing::Directory;
use crate::harness::tokens::{Issuer, claims, gate, owners_claim};
use crate::harness::uploads::upload;
use crate::harness::{History, Setup, shared, test_over};

const LOWER: &str = "018f3c6e-7b1a-7c3d-9e2f-0123456789ab";
const UPPER: &str = "018F3C6E-7B1A-7C3D-9E2F-0123456789AB";

test_over!(either_case_is_the_same_owner, NOTES);
async fn either_case_is_the_same_owner(history: &'static History) {
    let directory = Directory::changed(history, |definition| definition["owner"]["type"] = "uuid".into());
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    setup.definitions = Some(directory.0.clone());
    let claims_of_owners = [(history.owners.into(), owners_claim(history.owners, OwnerType::Uuid))].into();
    setup.gate = gate(Settings { claims: claims_of_owners, ..issuer.settings() }, OpenParts::default()).await;
    let service = setup.start().await;
    let with_token = |ids: Value| {
        let mut claims = claims("ann", "append read list", Value::Null);
        claims[history.owners] = ids;
        service.client.with_token(issuer.signer.sign(&claims))
    };
    let (ann, everyone) = (with_token(json!([UPPER])), with_token(json!("*")));
    let path = |id: &str| format!("{}/{id}/{}", history.owners_path(), history.name);

    for (number, id) in [(1, UPPER), (2, LOWER)] {
        let answer = ann.post_text(&path(id), history.item(number).to_string()).await;
        assert_eq!(answer.expect(201)[history.owner_field], LOWER);
        assert_eq!(answer.header("location"), format!("{}/{number}", path(LOWER)));
        assert_eq!(ann.get(&path(id)).await.expect(200)[history.owner_field], LOWER);
    }
    ann.get(&path(&LOWER.replace("ab", "ac"))).await.problem(403, "forbidden");
    everyone.get(&path("general")).await.problem(400, "invalid-parameter");

    let watched = format!("/v1/live?watch={}", path(UPPER).trim_start_matches("/v1/"));
    assert_eq!(ann.send(reqwest::Method::HEAD, &watched, |request| request).await.status, 200);
    let twice = format!("{watched}&watch={}", path(LOWER).trim_start_matches("/v1/"));
    ann.get(&twice).await.problem(400, "invalid-parameter");
    let other = watched.replace("AB", "AC");
    ann.get(&other).await.problem(403, "forbidden");

    let mut line = history.item(3);
    line[history.owner_field] = UPPER.into();
    let summary = upload(&everyone, &history.of_many(), line.to_string()).await.expect(200);
    assert_eq!(summary["stored"], 1, "{summary}");

    let place = Place::of_service(&service).await;
    let histories = directory.0.to_str().expect("UTF-8");
    let flags = ["--mongodb-uri", &place.uri, "--database", &place.name, "--histories", histories];
    let file = std::env::temp_dir().join(format!("{}-uuids.csv", place.name));
    let rows =
        format!("{},author,number,writtenAt\n{UPPER},ann,4,2026-01-01T00:00:00Z\n", history.owner_field);
    std::fs::write(&file, rows).expect("a file");
    let file_name = file.to_string_lossy();
    let imported =
        run(&mut pagebucket(&[&["import", &*file_name, "--history", history.name], &flags[..]].concat()))
            .await;
    std::fs::remove_file(&file).expect("the file");
    assert_eq!(imported.status, Some(0), "{imported:?}");
    // Native UUIDs, of the subtype that drivers write now and of the old one.
    let uuid = Uuid::parse_str(LOWER).expect("a UUID");
    for (number, subtype) in [(5, BinarySubtype::Uuid), (6, BinarySubtype::UuidOld)] {
        let owner = Binary { subtype, bytes: uuid.bytes().to_vec() };
        let date = DateTime::from_millis(1_798_761_600_000 + number);
        let note = doc! { history.owner_field: owner, "author": "ann", "number": number, "writtenAt": date };
        service.database.collection("old").insert_one(note).await.expect("it is inserted");
    }
    let from = ["--from", &place.uri, "--from-database", &place.name, "--collection", "old"];
    let adopted =
        run(&mut pagebucket(&[&["adopt", "--into", history.name], &from[..], &flags[..]].concat())).await;
    assert_eq!(adopted.status, Some(0), "{adopted:?}");
    let exported = run(&mut pagebucket(
        &[&["export", "--owner", UPPER, "--history", history.name], &flags[..]].concat(),
    ))
    .await;
    assert_eq!((exported.status, exported.out.matches(LOWER).count()), (Some(0), 6), "{exported:?}");

    let owners = everyone.get(&history.owners_path()).await.expect(200);
    assert_eq!(owners["items"].as_array().map(Vec::len), Some(1), "{owners}");
    assert_eq!(owners["items"][0][history.owner_field], LOWER, "{owners}");
}
