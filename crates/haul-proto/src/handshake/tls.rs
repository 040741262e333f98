//! TLS configuration of a client and of a server: made once, shared by their connections.
//!
//! TLS 1.3 only, no resumption and no tickets (a transfer is long beside one round trip), no early data.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::crypto::{self, has_aes_instructions};
use crate::identity::{Identity, PeerTrust};

use super::verify::{Anonymous, RawKeyVerifier};

/// Why identity, trust and protocols make no TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// Not a DNS name and not an IP address.
    #[error("'{0}' is not a server name")]
    ServerName(String),
    /// A trust anchor is not a certificate, or there is none.
    #[error("certificate authority cannot be used")]
    Authority(#[source] VerifierBuilderError),
    /// A trust anchor cannot be read.
    #[error("certificate of an authority cannot be read")]
    Root(#[source] rustls::Error),
    /// The provider lacks what TLS 1.3 needs.
    #[error("TLS 1.3 is not available")]
    Unavailable(#[source] rustls::Error),
}

/// A client's TLS configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClientTls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) server_name: ServerName<'static>,
    pub(super) peer_shows_raw_key: bool,
}

impl ClientTls {
    /// For a client that is `identity`, or nobody; `protocols` are ALPN names, preferred first, and may be none.
    pub fn new(identity: Option<&Identity>, trust: &PeerTrust, protocols: Vec<Vec<u8>>) -> Result<Self, TlsConfigError> {
        let provider = crypto::provider();
        let verifier = server_verifier(trust, &provider)?;
        let peer_shows_raw_key = verifier.requires_raw_public_keys();
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsConfigError::Unavailable)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(client_resolver(identity));
        config.alpn_protocols = protocols;
        config.resumption = Resumption::disabled();
        config.enable_sni = !peer_shows_raw_key;
        Ok(Self { config: Arc::new(config), server_name: server_name(trust)?, peer_shows_raw_key })
    }
}

/// A server's TLS configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    pub(super) peer_shows_raw_key: bool,
}

impl ServerTls {
    /// For a server that is `identity`; `protocols` are ALPN names, preferred first, and may be none.
    pub fn new(identity: &Identity, trust: &PeerTrust, protocols: Vec<Vec<u8>>) -> Result<Self, TlsConfigError> {
        let provider = crypto::provider();
        let verifier = client_verifier(trust, &provider)?;
        let peer_shows_raw_key = verifier.requires_raw_public_keys();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsConfigError::Unavailable)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(server_resolver(identity));
        config.alpn_protocols = protocols;
        config.send_tls13_tickets = 0;
        // The side without AES instructions is the one that needs its choice of cipher.
        config.ignore_client_order = !has_aes_instructions();
        Ok(Self { config: Arc::new(config), peer_shows_raw_key })
    }
}

fn client_resolver(identity: Option<&Identity>) -> Arc<dyn ResolvesClientCert> {
    match identity {
        None => Arc::new(Anonymous),
        Some(identity) if identity.is_raw_key() => Arc::new(AlwaysResolvesClientRawPublicKeys::new(identity.certified())),
        Some(identity) => Arc::new(SingleCertAndKey::from(identity.certified())),
    }
}

fn server_resolver(identity: &Identity) -> Arc<dyn ResolvesServerCert> {
    if identity.is_raw_key() {
        Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.certified()))
    } else {
        Arc::new(SingleCertAndKey::from(identity.certified()))
    }
}

fn server_verifier(trust: &PeerTrust, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, TlsConfigError> {
    if let PeerTrust::CertificateAuthority { roots, .. } = trust {
        let builder = WebPkiServerVerifier::builder_with_provider(root_store(roots)?, Arc::clone(provider));
        return Ok(builder.build().map_err(TlsConfigError::Authority)?);
    }
    Ok(Arc::new(raw_key_verifier(trust, provider)))
}

fn client_verifier(trust: &PeerTrust, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
    if let PeerTrust::CertificateAuthority { roots, .. } = trust {
        let builder = WebPkiClientVerifier::builder_with_provider(root_store(roots)?, Arc::clone(provider));
        return builder.build().map_err(TlsConfigError::Authority);
    }
    Ok(Arc::new(raw_key_verifier(trust, provider)))
}

fn raw_key_verifier(trust: &PeerTrust, provider: &CryptoProvider) -> RawKeyVerifier {
    RawKeyVerifier { trust: trust.clone(), algorithms: provider.signature_verification_algorithms }
}

fn root_store(roots: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsConfigError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone()).map_err(TlsConfigError::Root)?;
    }
    Ok(Arc::new(store))
}

/// A raw key has no name; TLS wants one all the same and does not send it.
fn server_name(trust: &PeerTrust) -> Result<ServerName<'static>, TlsConfigError> {
    let name = match trust {
        PeerTrust::CertificateAuthority { server_name, .. } => server_name.as_str(),
        _ => "haul.invalid",
    };
    ServerName::try_from(name.to_owned()).map_err(|_| TlsConfigError::ServerName(name.to_owned()))
}
