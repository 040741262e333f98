//! Which AEAD protects a connection, and the order in which they are preferred.
//!
//! AES-128-GCM wins wherever the processor has AES instructions: 10 rounds against 14 of AES-256, and several times the speed of
//! ChaCha20-Poly1305, which wins where they are absent.

use std::sync::Arc;

use aws_lc_rs::aead;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs as backend;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};

/// The AEAD of a connection's data packets: that of the TLS suite which the handshake chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// AES-128-GCM: the default where AES instructions exist.
    Aes128Gcm,
    /// AES-256-GCM: for peers that insist on 256 bits.
    Aes256Gcm,
    /// ChaCha20-Poly1305: the default where AES instructions are absent.
    ChaCha20Poly1305,
}

impl CipherSuite {
    pub(crate) fn from_tls(suite: rustls::CipherSuite) -> Option<Self> {
        match suite {
            rustls::CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(Self::Aes128Gcm),
            rustls::CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(Self::Aes256Gcm),
            rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    pub(crate) fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    /// Forged packets that may be tried against the keys of a connection before it must be closed.
    pub(crate) const fn integrity_limit_pkts(self) -> u64 {
        match self {
            // RFC 9001 6.6: 2^52 for AES-GCM, 2^36 for ChaCha20-Poly1305
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }
}

/// The TLS provider: aws-lc-rs, TLS 1.3 suites only, fastest first, a post-quantum key exchange first.
pub fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = if has_aes_instructions() {
        vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256]
    } else {
        vec![TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384]
    };
    Arc::new(CryptoProvider { cipher_suites, ..backend::default_provider() })
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(crate) fn has_aes_instructions() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn has_aes_instructions() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn has_aes_instructions() -> bool {
    false
}
