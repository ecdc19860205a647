use crate::harness::tests;
tests!["page_views::reads": ];
