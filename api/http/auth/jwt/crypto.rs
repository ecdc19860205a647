//! Verifies signatures with ring, which TLS uses too: one library of cryptography in the program.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature as ring;
use signature::{Error, Verifier};

/// Makes jsonwebtoken use ring.
pub(crate) fn install() {
    static RING: CryptoProvider = CryptoProvider {
        signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        verifier_factory: |algorithm, key| {
            Signed::by(*algorithm, key).map(|verifier| Box::new(verifier) as Box<dyn JwtVerifier>)
        },
        key_utils: KeyUtils::new_unimplemented(),
    };
    // An error means that it was installed before.
    let _ = RING.install_default();
}

/// Verifies the signatures of one key with one algorithm.
struct Signed {
    algorithm: Algorithm,
    key: VerifyingKey,
}

enum VerifyingKey {
    Rsa { parameters: &'static ring::RsaParameters, modulus: Vec<u8>, exponent: Vec<u8> },
    Curve(ring::UnparsedPublicKey<Vec<u8>>),
}

impl Signed {
    /// # Errors
    /// The algorithm is not one of a public key, or the key is for another algorithm.
    fn by(algorithm: Algorithm, key: &DecodingKey) -> jsonwebtoken::errors::Result<Self> {
        let rsa = |parameters| match key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } if key.family() == AlgorithmFamily::Rsa => {
                Ok(VerifyingKey::Rsa { parameters, modulus: n.clone(), exponent: e.clone() })
            }
            _ => Err(ErrorKind::InvalidKeyFormat.into()),
        };
        let curve = |family, verification: &'static dyn ring::VerificationAlgorithm| match key.kind() {
            DecodingKeyKind::SecretOrDer(point) if key.family() == family => {
                Ok(VerifyingKey::Curve(ring::UnparsedPublicKey::new(verification, point.clone())))
            }
            _ => Err(ErrorKind::InvalidKeyFormat.into()),
        };
        let key = match algorithm {
            Algorithm::RS256 => rsa(&ring::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&ring::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&ring::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&ring::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&ring::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&ring::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => curve(AlgorithmFamily::Ec, &ring::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => curve(AlgorithmFamily::Ec, &ring::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => curve(AlgorithmFamily::Ed, &ring::ED25519),
            _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
        };
        key.map(|key| Self { algorithm, key })
    }
}

impl JwtVerifier for Signed {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signed {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match &self.key {
            VerifyingKey::Rsa { parameters, modulus, exponent } => {
                let key = ring::RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature)
            }
            VerifyingKey::Curve(key) => key.verify(message, signature),
        };
        verified.map_err(|_| Error::new())
    }
}
