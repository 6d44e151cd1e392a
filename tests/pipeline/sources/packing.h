// The ways a test's bytes are packed.
#pragma once

#include "headrace/pipeline/sources/archives/open_input.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

inline Bytes pack(const Bytes& bytes, Packing packing) {
  return packing == Packing::kGzip ? gzip(bytes) : packing == Packing::kZstd ? zstd(bytes) : bytes;
}

inline std::string packing_name(const ::testing::TestParamInfo<Packing>& test) {
  return test.param == Packing::kPlain ? "plain" : test.param == Packing::kGzip ? "gzip" : "zstd";
}

}  // namespace headrace::test
