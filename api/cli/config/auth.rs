//! Flags of authentication.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::heading;

/// The default of `--jwt-types`, by RFC 9068.
pub const JWT_TYPES: &str = "at+jwt";

/// The default of `--explorer-oidc-scopes`: what the explorer does, and `openid`, without which some issuers
/// answer no token.
pub const EXPLORER_SCOPES: &str = "openid,read,append,list,views";

/// How clients are authenticated.
#[derive(Args, Debug, Clone, Default)]
pub struct AuthArgs {
    /// How clients are authenticated, comma-separated.
    ///
    /// `jwt`: by access tokens of an issuer; `keys`: by API keys that `pagebucket keys` creates; or both
    /// (`jwt,keys`). `none`, the default, is for a --listen on a loopback address.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_AUTH", value_name = "METHODS", value_delimiter = ',')]
    pub auth: Vec<AuthMethod>,

    /// Serve without authentication where other machines can reach it.
    ///
    /// Without this flag such a --listen needs --auth.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_ALLOW_UNAUTHENTICATED", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_unauthenticated: bool,

    /// Without authentication, let every client erase owners.
    ///
    /// An example is `DELETE /v1/customers/7`. With --auth the scope `admin` decides, and this flag changes
    /// nothing. The command `pagebucket erase` needs neither.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_ALLOW_ERASE", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_erase: bool,

    /// The `iss` of access tokens.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_JWT_ISSUER", value_name = "URL")]
    pub jwt_issuer: Option<String>,

    /// The `aud` of access tokens.
    ///
    /// This API as the issuer knows it, such as `https://api.example`.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_JWT_AUDIENCE", value_name = "NAME")]
    pub jwt_audience: Option<String>,

    /// The issuer's public keys: an https address, or a file.
    ///
    /// The address may be http on this machine. They are read again every 5 minutes, and when a token names
    /// an unknown key.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_JWKS", value_name = "URL|FILE")]
    pub jwks: Option<String>,

    /// The `typ` of access tokens, comma-separated.
    ///
    /// Issuers that do not follow RFC 9068 write `JWT`.
    #[arg(
        long,
        help_heading = heading::AUTHENTICATION,
        env = "PAGEBUCKET_JWT_TYPES",
        value_name = "TYPES",
        default_value = JWT_TYPES,
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub jwt_types: Vec<String>,

    /// The claim that names the owners whose histories a token is for.
    ///
    /// Its value is an id, an array of ids, or `*` for all. `sub` if each token is for one owner. Default:
    /// the name of the owners' collection, such as `customers`. With several collections:
    /// `customers=CLAIM,rooms=CLAIM`.
    #[arg(
        long,
        help_heading = heading::AUTHENTICATION,
        env = "PAGEBUCKET_OWNERS_CLAIM",
        value_name = "CLAIM",
        visible_alias = "customers-claim",
        value_delimiter = ','
    )]
    pub owners_claim: Vec<String>,

    /// Let users of the explorer sign in at the issuer, as this client of it.
    ///
    /// The issuer must know it as a public client with PKCE that returns to the explorer's first page, such
    /// as `https://api.example/`, and must let pages from there ask for tokens (CORS). It needs --auth jwt.
    #[arg(long, help_heading = heading::EXPLORER, env = "PAGEBUCKET_EXPLORER_OIDC_CLIENT_ID", value_name = "ID")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub explorer_oidc_client_id: Option<String>,

    /// The scopes that the explorer asks the issuer for, comma-separated.
    #[arg(
        long,
        help_heading = heading::EXPLORER,
        env = "PAGEBUCKET_EXPLORER_OIDC_SCOPES",
        value_name = "SCOPES",
        default_value = EXPLORER_SCOPES,
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub explorer_oidc_scopes: Vec<String>,

    /// What is served without a token, comma-separated: `docs`, `metrics`.
    ///
    /// `docs` is the documentation. It needs --auth.
    #[arg(long, help_heading = heading::AUTHENTICATION, env = "PAGEBUCKET_OPEN", value_name = "WHAT", value_delimiter = ',')]
    pub open: Vec<OpenPart>,
}

impl AuthArgs {
    /// Whether clients are authenticated.
    pub fn guards(&self) -> bool {
        self.auth.iter().any(|method| *method != AuthMethod::None)
    }
}

/// A way to authenticate clients.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// Not at all.
    None,
    /// By access tokens of an issuer.
    Jwt,
    /// By API keys.
    Keys,
}

/// What may need no token.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenPart {
    /// Swagger UI, the list of problems, the schema of definitions and the OpenAPI document; with
    /// --no-explorer also `/`. The explorer needs no token: it asks for one itself.
    Docs,
    /// The metrics.
    Metrics,
}
