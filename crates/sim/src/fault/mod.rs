//! Loss, corruption and failure.
