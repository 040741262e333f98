//! Judges raw public keys (RFC 7250) for TLS, on both sides.

use std::fmt;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerIncompatible, SignatureScheme};

use crate::identity::{Fingerprint, PeerTrust, PublicKey};

/// The error by which a verifier tells that it does not trust a key; travels through rustls inside a certificate error.
#[derive(Debug)]
pub(super) struct NotTrusted(pub(super) Fingerprint);

impl fmt::Display for NotTrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not trusted", self.0)
    }
}

impl std::error::Error for NotTrusted {}

/// Accepts a peer whose raw key `trust` accepts and that signs the handshake with it.
#[derive(Debug)]
pub(super) struct RawKeyVerifier {
    pub(super) trust: PeerTrust,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl RawKeyVerifier {
    fn judge(&self, spki: &CertificateDer<'_>) -> Result<(), Error> {
        let key = PublicKey::from_spki(spki.to_vec()).map_err(|_| CertificateError::BadEncoding)?;
        if self.trust.trusts(&key) {
            return Ok(());
        }
        Err(CertificateError::Other(OtherError(Arc::new(NotTrusted(key.fingerprint())))).into())
    }

    fn verify_signature(
        &self,
        message: &[u8],
        spki: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(spki.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

const TLS12_REFUSED: Error = Error::PeerIncompatible(PeerIncompatible::Tls12NotOfferedOrEnabled);

impl ServerCertVerifier for RawKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(TLS12_REFUSED)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeyVerifier {
    fn client_auth_mandatory(&self) -> bool {
        !matches!(self.trust, PeerTrust::Anyone)
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(TLS12_REFUSED)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// A client without an identity. It still offers the raw-key extension: a server that would take a raw key refuses a client that does not.
#[derive(Debug)]
pub(super) struct Anonymous;

impl ResolvesClientCert for Anonymous {
    fn resolve(&self, _root_hint_subjects: &[&[u8]], _sigschemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn only_raw_public_keys(&self) -> bool {
        true
    }

    fn has_certs(&self) -> bool {
        false
    }
}
