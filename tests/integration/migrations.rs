//! Migrations, as other drivers see what they made.

mod drivers;
