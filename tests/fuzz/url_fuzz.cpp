// URLs as a user writes them, and the shards that one stands for.
#include <cstdlib>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/url.h"
#include "headrace/tests/fuzz/fuzz_target.h"

namespace headrace::fuzz {

std::vector<test::Bytes> seeds() {
  return {test::to_bytes("https://host.example:8080/path/train-{000..099}.tar?version=3"),
          test::to_bytes("s3://bucket/prefix/a%20b/{0..3}-{08..11}.tar"),
          test::to_bytes("http://[::1]:80/%7Euser/x.tar")};
}

// What is encoded is decoded to the same bytes again.
void check_encoding(const std::string& text) {
  for (const bool keeps_slashes : {true, false}) {
    if (remote::percent_decoded(remote::percent_encoded(text, keeps_slashes)) != text) std::abort();
  }
}

void run(std::span<const std::byte> input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  check_encoding(text);
  remote::percent_decoded(text);
  if (text.size() < 1024 && remote::is_shard_pattern(text) && !remote::is_below_shard_pattern(text)) {
    for (const std::string& shard : remote::expand_shard_pattern(text)) {
      if (shard.size() > text.size() + 64) std::abort();
    }
  }
  if (!is_url(text)) return;
  const remote::Url url = remote::parse_url(text);
  if (url.host.empty()) std::abort();
}

void repair(test::Bytes&) {}

}  // namespace headrace::fuzz
