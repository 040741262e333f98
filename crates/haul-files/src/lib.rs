//! File trees across a network: manifest, blocks, journal, verification, stores.
