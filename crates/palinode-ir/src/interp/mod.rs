//! The reference interpreter, generic over `Real`.
