//! What a person sees, in a real browser without any network but this machine's, and under the policy that
//! the pages are sent with.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use pagebucket_http::{Gate, OpenParts};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout};

use crate::harness::tokens::{EVERYTHING, Issuer, claims};
use crate::harness::{PATIENCE, Service, Setup, shared, skip};
use crate::readme::the_session_is_as_printed;

/// Notes what the policy of a page refuses, from before the page's first byte.
const WATCH: &str = "window.refused = []; document.addEventListener('securitypolicyviolation', event =>
    refused.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));";

/// A browser with one page, driven by the DevTools protocol over pipes. Ends with this value.
struct Browser {
    _child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
    /// What the page's console and the browser's log say.
    said: Vec<String>,
    profile: PathBuf,
}

impl Browser {
    /// At this address, or `None` where there is no browser.
    async fn open(url: &str) -> Option<Self> {
        let Ok(program) = std::env::var("CHROMIUM") else {
            skip(&format!("{url} in a browser"), "CHROMIUM is not set");
            return None;
        };
        let name = format!("pagebucket-browser-{}-{:x}", std::process::id(), rand::random::<u64>());
        let profile = std::env::temp_dir().join(name);
        // The browser's ends of the pipes are its descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh", &program])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-sync", "--disable-background-networking", "--disable-component-update"])
            // Whatever it asks for elsewhere, it does not get.
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("--remote-debugging-pipe")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the browser to start");
        let (to, from) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let from = BufReader::new(from);
        let mut browser =
            Self { _child: child, to, from, calls: 0, session: None, said: Vec::new(), profile };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" })).await;
        let page = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", page).await;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({})).await;
        }
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH })).await;
        browser.call("Page.navigate", json!({ "url": url })).await;
        browser.until("document.readyState == 'complete'").await;
        Some(browser)
    }

    /// The result of a call. What comes meanwhile is noted.
    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{call}\0").as_bytes()).await.expect("to call");
        loop {
            let mut message = Vec::new();
            let read = timeout(PATIENCE, self.from.read_until(0, &mut message)).await;
            read.expect("the browser to answer in time").expect("to read");
            assert_eq!(message.pop(), Some(0), "the browser ended");
            let mut message: Value = serde_json::from_slice(&message).expect("JSON");
            if message["id"] == self.calls {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            let method = message["method"].as_str().unwrap_or_default();
            if ["Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"].contains(&method) {
                self.said.push(message["params"].to_string());
            }
        }
    }

    /// The value of an expression in the page.
    async fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", parameters).await;
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    async fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression).await != true {
            assert!(Instant::now() < deadline, "not in time: {expression}; {:?}", self.said);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for an element, and clicks it.
    async fn click(&mut self, selector: &str) {
        self.until(&format!("document.querySelector({selector:?}) != null")).await;
        self.value(&format!("document.querySelector({selector:?}).click()")).await;
    }

    /// Waits for a field, and types into it.
    async fn type_into(&mut self, selector: &str, text: &str) {
        self.until(&format!("document.querySelector({selector:?}) != null")).await;
        self.value(&format!("document.querySelector({selector:?}).focus()")).await;
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// Waits until Swagger UI shows an answer with this status to a request of an operation.
    async fn answered(&mut self, operation: &str, status: u16) {
        let shown = format!("{operation} .live-responses-table tbody .response-col_status");
        let shown = format!("document.querySelector({shown:?})?.innerText.trim().split(/\\s/)[0]");
        self.until(&format!("{shown} == '{status}'")).await;
    }

    /// What Swagger UI shows as the answer to a request of an operation.
    async fn answer(&mut self, operation: &str) -> String {
        let shown = format!("{operation} .live-responses-table");
        self.until(&format!("document.querySelector('{shown} tbody .response-col_status') != null")).await;
        let answer = self.value(&format!("document.querySelector('{shown}').innerText")).await;
        answer.as_str().expect("a text").to_owned()
    }

    /// The page as it is now.
    async fn html(&mut self) -> String {
        let html = self.value("document.documentElement.outerHTML").await;
        html.as_str().expect("a text").to_owned()
    }

    /// Checks that the policy has refused nothing, and that no script has failed.
    async fn expect_nothing_refused(mut self) {
        assert_eq!(self.value("refused").await, json!([]));
        let bad =
            |said: &&String| said.contains("Content Security Policy") || said.contains("exceptionDetails");
        assert_eq!(self.said.iter().find(bad), None);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What cannot be removed is in the system's own directory for such things.
        std::fs::remove_dir_all(&self.profile).ok();
    }
}

/// The usual service, and one of the histories of the examples without the explorer.
async fn services() -> [Service; 2] {
    let mut setup = Setup::on(shared().await);
    setup.definitions = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/histories").into());
    setup.config.api.explorer = false;
    [Service::start().await, setup.start().await]
}

#[tokio::test(flavor = "multi_thread")]
async fn swagger_ui_shows_every_operation() {
    for service in services().await {
        shows_every_operation(&service).await;
    }
}

async fn shows_every_operation(service: &Service) {
    let Some(mut browser) = Browser::open(&service.client.url("/docs/")).await else { return };
    browser.until("document.querySelector('.opblock') != null").await;
    let page = browser.html().await;
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
    browser.expect_nothing_refused().await;
}

/// As a newcomer does it after README's session, from the top of the page, without filling in anything: each
/// answer says something, and no click deletes.
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_tried_out_as_it_is_shown() {
    let mut setup = Setup::on(shared().await);
    setup.gate = Gate::unguarded();
    let service = setup.start().await;
    the_session_is_as_printed(&service).await;
    let Some(mut browser) = Browser::open(&service.client.url("/docs/")).await else { return };
    assert_eq!(browser.value("document.title").await, "API of pagebucket");
    browser.until("document.querySelector('.opblock') != null").await;
    let shown = browser.value("[...document.querySelectorAll('.opblock')].map(block => block.id)").await;
    let shown: Vec<_> = shown.as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    assert!(shown.len() > 20, "{shown:?}");
    for operation in shown.iter().map(|id| format!("#{id}")) {
        if operation.contains("-watch") || operation.contains("-follow") {
            browser.click(&format!("{operation} .opblock-summary-control")).await;
            browser.until(&format!("document.querySelector('{operation} .parameters') != null")).await;
            let button = format!("document.querySelector('{operation} .try-out__btn')");
            assert_eq!(browser.value(&button).await, Value::Null, "its answer does not end");
            continue;
        }
        for button in [".opblock-summary-control", ".try-out__btn", ".execute"] {
            browser.click(&format!("{operation} {button}")).await;
        }
        if operation.ends_with("eraseCustomer") {
            erases_nothing(&mut browser, &operation).await;
        } else {
            let answer = browser.answer(&operation).await;
            let said: String = answer.split_whitespace().collect();
            assert!(said.starts_with("CodeDetails2"), "{operation}: {answer}");
            let empty =
                ["\"items\":[]", "\"stored\":0", "/problems#"].iter().find(|text| said.contains(**text));
            assert_eq!(empty, None, "{operation}: {answer}");
        }
        browser.click(&format!("{operation} .opblock-summary-control")).await;
    }
    assert!(service.client.total(7).await > 3, "what was prefilled is appended");
    // Everything there is, so that what a policy may refuse is shown.
    let models = "document.querySelectorAll('.model-toggle.collapsed').forEach(toggle => toggle.click())";
    browser.value(models).await;
    browser.expect_nothing_refused().await;
}

/// The operation asks for an id before it is sent; then the server refuses it.
async fn erases_nothing(browser: &mut Browser, operation: &str) {
    browser.until(&format!("document.querySelector('{operation} input.invalid') != null")).await;
    let answers =
        browser.value(&format!("document.querySelector('{operation} .live-responses-table')")).await;
    assert_eq!(answers, Value::Null, "something was sent");
    browser.type_into(&format!("{operation} .parameters input"), "7").await;
    // What was typed counts a moment later.
    let send = format!("document.querySelector('{operation} .execute').click()");
    let status =
        format!("document.querySelector('{operation} .live-responses-table tbody .response-col_status')");
    browser.until(&format!("{status} != null || {send}")).await;
    browser.answered(operation, 403).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_tried_out_with_a_token() {
    let issuer = Issuer::start().await;
    let mut setup = Setup::on(shared().await);
    setup.gate = issuer.gate(OpenParts { docs: true, metrics: false }).await;
    let service = setup.start().await;
    let Some(mut browser) = Browser::open(&service.client.url("/docs/")).await else { return };
    let operation = "#operations-Customers-listCustomers";
    for button in [".opblock-summary-control", ".try-out__btn", ".execute"] {
        browser.click(&format!("{operation} {button}")).await;
    }
    browser.answered(operation, 401).await;
    browser.click(".auth-wrapper .authorize").await;
    let token = issuer.signer.sign(&claims("ann", EVERYTHING, json!("*")));
    browser.type_into(".modal-ux input", &token).await;
    for button in [".modal-ux .authorize", ".modal-ux .btn-done"] {
        browser.click(button).await;
    }
    browser.click(&format!("{operation} .execute")).await;
    browser.answered(operation, 200).await;
    browser.expect_nothing_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_names_its_own_address() {
    let [service, examples] = services().await;
    let Some(mut browser) = Browser::open(&examples.client.url("/")).await else { return };
    let page = browser.html().await;
    for path in ["/v1/accounts/123e4567-e89b-42d3-a456-426614174000/executions", "/v1/rooms/7f3a2c/messages"]
    {
        assert!(page.contains(&format!(">{}</span>{path}", examples.client.url(""))), "{page}");
    }
    assert!(!page.contains("trades"), "{page}");
    let width = browser.value("getComputedStyle(document.body).maxWidth").await;
    assert_eq!(width, "672px", "the style sheet is in use");
    browser.expect_nothing_refused().await;
    let Some(mut browser) = Browser::open(&service.client.url("/")).await else { return };
    browser.click("details.shell > summary").await;
    let address = service.client.url("/v1/customers/7/trades");
    browser.until(&format!("document.body.textContent.includes({address:?})")).await;
    let width = browser.value("getComputedStyle(document.querySelector('main')).maxWidth").await;
    assert_eq!(width, "1260px", "the style sheet is in use");
    browser.expect_nothing_refused().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_has_its_place() {
    let service = Service::start().await;
    let Some(mut browser) = Browser::open(&service.client.url("/problems#misdirected-request")).await else {
        return;
    };
    let border = "getComputedStyle(document.getElementById('misdirected-request')).borderLeftColor";
    assert_ne!(browser.value(border).await, "rgba(0, 0, 0, 0)", "the place that was asked for is marked");
    browser.expect_nothing_refused().await;
}
