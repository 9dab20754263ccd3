//! Files and blocking, for everything that is not a browser.
