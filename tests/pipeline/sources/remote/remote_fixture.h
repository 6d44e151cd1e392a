// Data on a server of this process, and the same data as files.
#pragma once

#include "headrace/devices/base/remote.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/archives.h"
#include "headrace/tests/support/http_server.h"
#include "headrace/tests/support/images.h"

namespace headrace::test {

inline std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Retries within milliseconds, and is patient otherwise: what a busy machine holds up is no fault.
inline constexpr remote::Timing kQuickRetries{.first_pause = std::chrono::milliseconds(1),
                                              .max_pause = std::chrono::milliseconds(10),
                                              .stall = std::chrono::seconds(10),
                                              .deadline = std::chrono::seconds(60)};

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() {
    remote::set_timing(kQuickRetries);
    for (const char* name : {"http_proxy", "https_proxy", "all_proxy"}) ::unsetenv(name);
    ::setenv("HEADRACE_INDEX_FOLDER", "off", 1);  // files of other tests have the same URLs and versions
  }
  ~RemoteTest() override {
    remote::set_timing({});
    for (const char* name :
         {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
      ::unsetenv(name);
  }

  // Serves the bytes at `name`, and keeps them as a file.
  void put(const std::string& name, const Bytes& bytes) {
    local_.write(name, bytes);
    server_.serve("/" + name, text_of(bytes));
  }
  // Lets some of the requests fail, or break off.
  void fail_some_requests() {
    server_.misbehave([](const ServedRequest& request) {
      return request.number % 5 == 1   ? Misbehaviour::kUnavailable
             : request.number % 7 == 3 ? Misbehaviour::kReset
                                       : Misbehaviour::kNone;
    });
  }
  std::string at(const std::string& name) const { return server_.url() + "/" + name; }
  std::string s3(const std::string& key) const {
    ::setenv("AWS_ENDPOINT_URL", server_.url().c_str(), 1);
    return "s3://" + key;
  }

  TempFolder local_;
  HttpServer server_;
};

inline constexpr int kSide = 48;
inline Bytes noisy_jpeg(std::uint64_t seed) { return encode_jpeg(make_picture(kSide, kSide, 3, seed)); }

// Images of three classes; with `padding`, so many bytes after each image, which no decoder reads.
inline Bytes tar_of_images(std::uint64_t count, std::size_t padding = 0) {
  TarBuilder tar;
  for (std::uint64_t i = 0; i < count; ++i) {
    Bytes image = noisy_jpeg(i);
    image.resize(image.size() + padding);
    tar.add(std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".jpg", image);
  }
  return tar.finish();
}

inline Dataset decoded(const std::filesystem::path& path, Split split = Split::kTrain) {
  return Dataset::from(open_source(path, split))
      .shuffle({.seed = 3})
      .decode({.height = kSide, .width = kSide})
      .batch({.global_batch = 8});
}

inline std::vector<BatchDigest> stream_of(const Dataset& dataset, LoaderOptions options = {}) {
  return cpu_digests_of(dataset, options);
}

}  // namespace headrace::test
