//! Programs that speak MongoDB's protocol and are not MongoDB, and what gives each away. The table here is
//! the one place to edit.

use mongodb::bson::Document;

/// Where an emulation is recognised.
enum Sign {
    /// By a field of the answer of `buildInfo`.
    Build(&'static str),
    /// By a field of `internal` in the answer of `hello`.
    Hello(&'static str),
    /// By the end of the name of a host of the connection string.
    Host(&'static str),
}

/// The sources:
///
/// - MongoDB's own library that tells them apart, npm `mongodb-build-info` 1.8 (`identifyServerName` in its
///   `src/index.ts`): `ferretdb` in `buildInfo`, and the names of hosts. Earlier versions of it have `_t` in
///   `buildInfo` for Cosmos DB.
/// - FerretDB 1, `internal/handler/msg_buildinfo.go`: `ferretdbVersion`.
/// - DocumentDB, the extension of PostgreSQL that Azure serves too: its gateway puts `documentdb_versions`
///   into `internal` of `hello` (github.com/documentdb/documentdb, issue 672), and earlier `cosmos_versions`.
const EMULATIONS: &[(Sign, &str)] = &[
    (Sign::Build("ferretdb"), "FerretDB"),
    (Sign::Build("ferretdbVersion"), "FerretDB"),
    (Sign::Hello("documentdb_versions"), "DocumentDB"),
    (Sign::Hello("cosmos_versions"), "DocumentDB"),
    (Sign::Build("_t"), "Azure Cosmos DB"),
    (Sign::Host(".cosmos.azure.com"), "Azure Cosmos DB"),
    (Sign::Host("docdb.amazonaws.com"), "Amazon DocumentDB"),
    (Sign::Host("docdb-elastic.amazonaws.com"), "Amazon DocumentDB"),
    (Sign::Host(".firestore.goog"), "Firestore"),
];

/// The name of the emulation that these answers come from, if they do not come from MongoDB. `hosts` are
/// those of the connection string, with their ports.
pub(crate) fn recognise(hello: &Document, build: &Document, hosts: &str) -> Option<&'static str> {
    let internal = hello.get_document("internal").ok();
    let shows = |sign: &Sign| match sign {
        Sign::Build(field) => build.contains_key(field),
        Sign::Hello(field) => internal.is_some_and(|internal| internal.contains_key(field)),
        Sign::Host(end) => {
            let mut names = hosts.split(',').filter_map(|host| host.rsplit_once(':'));
            names.any(|(name, _)| name.to_ascii_lowercase().ends_with(end))
        }
    };
    EMULATIONS.iter().find(|(sign, _)| shows(sign)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    /// As mongod 7.0.28 and its mongos answer, without what all servers have.
    fn mongodb_hello() -> Document {
        doc! { "isWritablePrimary": true, "setName": "rs0", "maxWireVersion": 21, "readOnly": false }
    }

    fn mongodb_build() -> Document {
        doc! {
            "version": "7.0.28", "modules": [], "allocator": "tcmalloc",
            "javascriptEngine": "mozjs", "sysInfo": "deprecated",
            "versionArray": [7, 0, 28, 0], "bits": 64, "debug": false, "storageEngines": ["wiredTiger"],
        }
    }

    #[test]
    fn what_a_server_says_of_itself_names_it() {
        // FerretDB 1: internal/handler/msg_buildinfo.go.
        let first = doc! {
            "version": "7.0.42", "modules": [],
            "sysInfo": "deprecated", "versionArray": [7, 0, 42, 0], "bits": 64, "debug": false,
            "maxBsonObjectSize": 16_777_216, "buildEnvironment": {}, "ferretdbVersion": "v1.24.0",
            "ferretdbFeatures": { "aggregationStages": ["$match"] },
        };
        // FerretDB 2: what it adds to the answers of buildInfo and serverStatus.
        let second = doc! {
            "version": "7.0.77", "versionArray": [7, 0, 77, 0], "bits": 64,
            "ferretdb": { "version": "v2.5.0", "package": "docker", "postgresql": "17.5", "documentdb": "0.106.0" },
        };
        // Cosmos DB with request units.
        let cosmos =
            doc! { "_t": "BuildInfoResponse", "ok": 1, "version": "7.0.0", "versionArray": [7, 0, 0, 0] };
        // DocumentDB's gateway, and what Azure served before it was renamed.
        let gateway = doc! {
            "isWritablePrimary": true, "msg": "isdbgrid", "internal": { "documentdb_versions": ["0.117.0"], "kind": "" },
        };
        let before = doc! {
            "isWritablePrimary": true, "msg": "isdbgrid", "setName": "globaldb",
            "internal": { "cosmos_versions": ["1.104-1", "1.105.0"] },
        };
        for (hello, build, name) in [
            (mongodb_hello(), first, Some("FerretDB")),
            (mongodb_hello(), second, Some("FerretDB")),
            (mongodb_hello(), cosmos, Some("Azure Cosmos DB")),
            (gateway, doc! { "version": "7.0.0" }, Some("DocumentDB")),
            (before, doc! { "version": "7.0.0" }, Some("DocumentDB")),
            (mongodb_hello(), mongodb_build(), None),
            (doc! { "isWritablePrimary": true, "msg": "isdbgrid" }, mongodb_build(), None),
        ] {
            assert_eq!(recognise(&hello, &build, "127.0.0.1:27017"), name, "{hello} {build}");
        }
    }

    #[test]
    fn a_host_names_a_service_that_says_nothing_of_itself() {
        for (hosts, name) in [
            ("history.mongo.cosmos.azure.com:10255", Some("Azure Cosmos DB")),
            ("one.node.eu-west-1.docdb.amazonaws.com:27017", Some("Amazon DocumentDB")),
            ("a.example:1,one.us-east-1.docdb-elastic.AmazonAWS.com:27017", Some("Amazon DocumentDB")),
            ("id.nam5.firestore.goog:443", Some("Firestore")),
            ("cluster0-shard-00-00.abcde.mongodb.net:27017", None),
            ("docdb.amazonaws.com.example:27017", None),
            ("[::1]:27017", None),
        ] {
            assert_eq!(recognise(&mongodb_hello(), &mongodb_build(), hosts), name, "{hosts}");
        }
    }
}
