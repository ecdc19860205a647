//! The care for what is stored: migrations and guards of collections, deletion, and comparing what is stored
//! with what must hold.

pub(crate) mod collection_guards;
pub(crate) mod deletion;
pub(crate) mod migrations;
pub(crate) mod sharding;
pub(crate) mod verify;
