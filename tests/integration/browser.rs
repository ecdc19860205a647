//! What a person sees, in a real browser without any network but this machine's.

use std::time::Duration;

use tokio::process::Command;

use crate::harness::{Service, skip, tests};

tests!["browser": swagger_ui_shows_every_operation, the_first_page_names_its_own_address];

/// The page after its scripts have run, or `None` where there is no browser.
async fn rendered(url: &str) -> Option<String> {
    let Ok(browser) = std::env::var("CHROMIUM") else {
        skip(&format!("{} in a browser", url.rsplit('/').next().unwrap_or(url)), "CHROMIUM is not set");
        return None;
    };
    let profile = std::env::temp_dir().join(format!(
        "pagebucket-browser-{}-{:x}",
        std::process::id(),
        rand::random::<u64>()
    ));
    let browser = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args(["--disable-background-networking", "--disable-component-update"])
        // Whatever it asks for elsewhere, it does not get.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", profile.display()))
        // Timers and requests of the page run to their end before it is printed.
        .args(["--virtual-time-budget=20000", "--dump-dom", url])
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(90), browser).await.expect("the browser to end");
    std::fs::remove_dir_all(&profile).ok();
    Some(String::from_utf8(output.expect("the browser to run").stdout).expect("text"))
}

async fn swagger_ui_shows_every_operation() {
    let service = Service::start().await;
    let Some(page) = rendered(&service.client.url("/docs/")).await else { return };
    let document = service.client.get("/openapi.json").await.expect(200);
    let mut operations = 0;
    for methods in document["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values().filter(|value| value.is_object()) {
            let id = format!(
                "operations-{}-{}",
                operation["tags"][0].as_str().unwrap(),
                operation["operationId"].as_str().unwrap()
            );
            assert!(page.contains(&id), "{id} is not shown");
            operations += 1;
        }
    }
    assert!(operations >= 7, "{operations}");
    assert!(!page.contains("Failed to load"), "Swagger UI shows an error");
}

async fn the_first_page_names_its_own_address() {
    let service = Service::start().await;
    let Some(page) = rendered(&service.client.url("/")).await else { return };
    let address = service.client.url("");
    assert!(page.contains(&format!(">{address}</span>/v1/customers/7/trades")), "{page}");
}
