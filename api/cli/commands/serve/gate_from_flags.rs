//! The gate of a server, from its flags.

use std::collections::BTreeMap;

use pagebucket_engine::Store;
use pagebucket_http::auth::Authenticator;
use pagebucket_http::auth::jwt::{ExplorerClient, Jwt, KeySource, OwnersClaim, Pace, Settings};
use pagebucket_http::auth::keys::Keys;
use pagebucket_http::{Gate, OpenParts, origin_of};
use pagebucket_model::definition::{Definitions, Owner};
use pagebucket_model::domain::{Clock, Invalid};

use crate::commands::exit::Failure;
use crate::config::{AuthArgs, AuthMethod, EXPLORER_SCOPES, JWT_TYPES, OpenPart, ServerArgs};

/// Refuses flags that do not go together, before a database is waited for.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn check(auth: &AuthArgs, server: &ServerArgs) -> Result<(), Failure> {
    let refuse = |words: &str| Err(Failure::Usage(words.to_owned()));
    let tls = &server.tls;
    for (flag, given, needed, is_there) in [
        ("--tls-cert", tls.tls_cert.is_some(), "--tls-key", tls.tls_key.is_some()),
        ("--tls-key", tls.tls_key.is_some(), "--tls-cert", tls.tls_cert.is_some()),
        (
            "--rate-burst",
            server.api.rate.rate_burst.is_some(),
            "--rate-limit",
            server.api.rate.rate_limit.is_some(),
        ),
    ] {
        if given && !is_there {
            return refuse(&format!("{flag} needs {needed}"));
        }
    }
    let uses = |method| auth.auth.contains(&method);
    let guarded = auth.guards();
    if guarded && uses(AuthMethod::None) {
        return refuse("--auth none does not go together with another method");
    }
    let ip = server.listen.ip().to_canonical();
    if !guarded && !ip.is_loopback() && !auth.allow_unauthenticated {
        return refuse(&format!(
            "--listen {ip} can be reached from other machines: authenticate clients by --auth jwt or --auth keys, or \
             allow everyone to read and append by --allow-unauthenticated"
        ));
    }
    if guarded && auth.allow_unauthenticated {
        return refuse("--allow-unauthenticated does not go together with --auth");
    }
    if guarded && server.api.cache_public {
        return refuse(
            "--cache-public does not go together with --auth: shared caches do not ask for tokens",
        );
    }
    for (flag, given) in [
        ("--jwt-issuer", auth.jwt_issuer.is_some()),
        ("--jwt-audience", auth.jwt_audience.is_some()),
        ("--jwks", auth.jwks.is_some()),
    ] {
        if given != uses(AuthMethod::Jwt) {
            let verb = if given { "needs" } else { "is needed for" };
            return refuse(&format!("{flag} {verb} --auth jwt"));
        }
    }
    for (flag, given) in [
        ("--jwt-types", auth.jwt_types != [JWT_TYPES]),
        ("--owners-claim", !auth.owners_claim.is_empty()),
        ("--explorer-oidc-client-id", auth.explorer_oidc_client_id.is_some()),
    ] {
        if given && !uses(AuthMethod::Jwt) {
            return refuse(&format!("{flag} needs --auth jwt"));
        }
    }
    if auth.explorer_oidc_client_id.is_some() {
        if server.api.no_explorer {
            return refuse("--explorer-oidc-client-id does not go together with --no-explorer");
        }
        if auth.jwt_issuer.as_deref().and_then(origin_of).is_none() {
            return refuse("--explorer-oidc-client-id needs a --jwt-issuer that is an http or https address");
        }
    } else if auth.explorer_oidc_scopes.join(",") != EXPLORER_SCOPES {
        return refuse("--explorer-oidc-scopes needs --explorer-oidc-client-id");
    }
    if !guarded && !auth.open.is_empty() {
        return refuse("--open needs --auth: without it everything is served without a token");
    }
    Ok(())
}

/// The gate of a server on this store.
///
/// # Errors
/// A flag has a mistake, or the issuer's keys are in a file that is no set of keys.
pub(crate) async fn open(auth: &AuthArgs, store: &Store) -> Result<Gate, Failure> {
    let open = OpenParts {
        docs: auth.open.contains(&OpenPart::Docs),
        metrics: auth.open.contains(&OpenPart::Metrics),
    };
    let jwt = match (&auth.jwt_issuer, &auth.jwt_audience, &auth.jwks) {
        (Some(issuer), Some(audience), Some(keys)) => {
            let keys = KeySource::parse(keys);
            let keys = keys.map_err(|Invalid(rule)| Failure::Usage(format!("--jwks {rule}")))?;
            let settings = Settings {
                issuer: issuer.clone(),
                audience: audience.clone(),
                types: auth.jwt_types.clone(),
                claims: claims(&auth.owners_claim, store.definitions())?,
                keys,
                pace: Pace::default(),
            };
            let jwt = Jwt::start(settings, Clock::system(), store.tasks()).await;
            let jwt = jwt.map_err(|error| Failure::Usage(format!("--jwks {error}")))?;
            let scopes = auth.explorer_oidc_scopes.clone();
            Some(match auth.explorer_oidc_client_id.clone() {
                Some(id) => jwt.signing_in_as(ExplorerClient { id, scopes }),
                None => jwt,
            })
        }
        _ => None,
    };
    let keys = auth.auth.contains(&AuthMethod::Keys).then(|| Keys::new(store, Clock::system()));
    let authenticator = Authenticator { jwt, keys };
    Ok(match (auth.guards(), auth.allow_erase) {
        (true, _) => Gate::guarded(authenticator, open),
        (false, true) => Gate::unguarded().allowing_erasure(),
        (false, false) => Gate::unguarded(),
    })
}

/// The claim of each collection of owners.
///
/// # Errors
/// A collection has no histories, or more than one claim.
fn claims(given: &[String], definitions: &Definitions) -> Result<BTreeMap<Box<str>, OwnersClaim>, Failure> {
    let collections = definitions.iter().map(|definition| &definition.owner.collection);
    let mut claims: BTreeMap<Box<str>, Option<String>> =
        collections.map(|collection| (collection.as_str().into(), None)).collect();
    for given in given {
        let refuse = |why| Err(Failure::Usage(format!("--owners-claim {given}: {why}")));
        // An address may be the name of a claim, and has no `=` before its query.
        let (named, claim) = match given.split_once('=') {
            Some((collection, claim)) => (Some(collection), claim),
            None => (None, given.as_str()),
        };
        if named.is_some_and(|named| !claims.contains_key(named)) {
            return refuse("there is no collection of owners with this name");
        }
        for (_, known) in claims.iter_mut().filter(|(of, _)| named.is_none_or(|named| named == &***of)) {
            if known.replace(claim.to_owned()).is_some() {
                return refuse("a collection of owners has one claim");
            }
        }
    }
    let owners = definitions.owners().into_iter();
    let claim = |owner: &Owner| {
        let name = claims.get(&*owner.collection).cloned().flatten();
        let name = name.unwrap_or_else(|| owner.collection.clone());
        (owner.collection.as_str().into(), OwnersClaim { name, kind: owner.kind })
    };
    Ok(owners.map(claim).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct AuthFlags {
        #[command(flatten)]
        auth: AuthArgs,
        #[command(flatten)]
        server: ServerArgs,
    }

    fn refused(flags: &[&str]) -> Option<String> {
        let flags = AuthFlags::try_parse_from(["test"].iter().chain(flags)).expect("flags");
        check(&flags.auth, &flags.server).err().map(|failure| match failure {
            Failure::Usage(words) => words,
            failure => panic!("{failure:?}"),
        })
    }

    #[test]
    fn only_this_machine_is_served_without_authentication() {
        let jwt = ["--jwt-issuer", "https://a", "--jwt-audience", "https://b", "--jwks", "keys.json"];
        let jwt = |flags: &[&'static str]| [&["--auth", "jwt"][..], &jwt, flags].concat();
        for flags in [
            &[][..],
            &["--auth", "none"],
            &["--listen", "[::1]:0"],
            &["--listen", "0.0.0.0:0", "--allow-unauthenticated"],
            &["--listen", "0.0.0.0:0", "--auth", "keys"],
            &jwt(&["--listen", "0.0.0.0:0"]),
            &["--cache-public"],
            &["--auth", "keys", "--open", "docs"],
            &jwt(&["--jwt-types", "JWT", "--owners-claim", "ids", "--open", "metrics"]),
            &jwt(&["--explorer-oidc-client-id", "explorer", "--explorer-oidc-scopes", "read"]),
        ] {
            assert_eq!(refused(flags), None, "{flags:?}");
        }
        for (flags, part) in [
            (&["--listen", "0.0.0.0:0"][..], "--allow-unauthenticated"),
            (&["--listen", "[::]:0", "--auth", "none"], "--allow-unauthenticated"),
            (&["--listen", "192.0.2.1:80"], "--auth jwt"),
            (&["--auth", "none,keys"], "--auth none"),
            (&["--auth", "keys", "--allow-unauthenticated"], "--allow-unauthenticated"),
            (&["--auth", "keys", "--cache-public"], "--cache-public"),
            (&["--auth", "jwt"], "--jwt-issuer is needed"),
            (&["--auth", "keys", "--jwks", "keys.json"], "--jwks needs --auth jwt"),
            (&["--jwt-types", "JWT"], "--jwt-types needs --auth jwt"),
            (&["--explorer-oidc-client-id", "explorer"], "--explorer-oidc-client-id needs --auth jwt"),
            (&jwt(&["--explorer-oidc-scopes", "read"]), "needs --explorer-oidc-client-id"),
            (&jwt(&["--explorer-oidc-client-id", "explorer", "--no-explorer"]), "--no-explorer"),
            (
                &[
                    "--auth",
                    "jwt",
                    "--jwt-issuer",
                    "login",
                    "--jwt-audience",
                    "api",
                    "--jwks",
                    "keys.json",
                    "--explorer-oidc-client-id",
                    "x",
                ],
                "--jwt-issuer that is an http",
            ),
            (&["--auth", "keys", "--owners-claim", "ids"], "--owners-claim needs --auth jwt"),
            (&["--tls-cert", "cert.pem"], "--tls-cert needs --tls-key"),
            (&["--tls-key", "key.pem"], "--tls-key needs --tls-cert"),
            (&["--rate-burst", "10"], "--rate-burst needs --rate-limit"),
            (&["--open", "docs,metrics"], "--open needs --auth"),
            (&["--auth", "none", "--open", "docs"], "--open needs --auth"),
        ] {
            let sentence = refused(flags).unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }

    #[test]
    fn each_collection_has_a_claim() {
        let definitions = Definitions::built_in();
        let claim = |given: &[&str]| {
            let given: Vec<_> = given.iter().map(|&given| given.to_owned()).collect();
            let claims = claims(&given, &definitions).map_err(Failure::sentence)?;
            Ok::<_, String>(claims["customers"].name.clone())
        };
        assert_eq!(claim(&[]).as_deref(), Ok("customers"));
        assert_eq!(claim(&["sub"]).as_deref(), Ok("sub"));
        assert_eq!(claim(&["customers=https://a.example/ids"]).as_deref(), Ok("https://a.example/ids"));
        assert!(claim(&["rooms=ids"]).unwrap_err().contains("rooms=ids"));
        for twice in [["customers=a", "customers=b"], ["customers=a", "b"], ["a", "customers=b"], ["a", "a"]]
        {
            let sentence = claim(&twice).unwrap_err();
            assert!(sentence.contains(twice[1]) && sentence.contains("one claim"), "{sentence}");
        }
    }
}
