//! A network in virtual time: links, queues, loss, topologies.
