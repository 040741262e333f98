//! How quinn is set up: windows, congestion control, AES-128-GCM.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::{Congestion, Failure, Plan};

/// A socket with large buffers.
pub fn socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::DGRAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn transport(plan: Plan) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(plan.window_bytes.into())
        .receive_window(plan.window_bytes.into())
        .send_window(u64::from(plan.window_bytes))
        .initial_mtu(plan.packet_bytes)
        .min_mtu(plan.packet_bytes)
        .mtu_discovery_config(None)
        .send_fairness(false);
    match plan.congestion {
        Congestion::Open => {
            let mut congestion = quinn::congestion::CubicConfig::default();
            congestion.initial_window(u64::from(plan.window_bytes));
            config.congestion_controller_factory(Arc::new(congestion));
        }
        Congestion::Cubic => _ = config.congestion_controller_factory(Arc::new(quinn::congestion::CubicConfig::default())),
        Congestion::Bbr => _ = config.congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default())),
    }
    if let Some(every) = plan.acks_every {
        let mut acks = quinn::AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(every));
        config.ack_frequency_config(Some(acks));
    }
    Arc::new(config)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

/// With a certificate made for this run.
pub fn server_config(plan: Plan) -> Result<quinn::ServerConfig, Failure> {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certified.cert)], key.into())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(plan));
    Ok(config)
}

/// Talks to whoever answers.
pub fn client_config(plan: Plan) -> Result<quinn::ClientConfig, Failure> {
    let provider = provider();
    let anyone = Anyone(provider.signature_verification_algorithms);
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(anyone))
        .with_no_client_auth();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(plan));
    Ok(config)
}

/// Accepts every server: who it is does not matter to a measurement, that signatures are checked does.
#[derive(Debug)]
struct Anyone(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has no TLS 1.2".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

const SOCKET_BUFFER_BYTES: usize = 64 << 20;
