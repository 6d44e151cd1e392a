// Two streams of one device, for the suites of the streams.
//
// Host functions of a GPU's streams share one thread: a test blocks in one of them at most, and looks at
// events, not at other host functions, while it does.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "headrace/tests/conformance/device_fixture.h"

namespace headrace::test {

template <typename Target>
class StreamFixture : public DeviceFixture<Target> {
 protected:
  void SetUp() override {
    DeviceFixture<Target>::SetUp();
    if (this->IsSkipped()) return;
    a_ = this->device().create_stream();
    b_ = this->device().create_stream();
  }

  static void fail_with(Stream& stream, const char* message) {
    stream.call([message] { throw std::runtime_error(message); });
  }

  static std::string error_of(Stream& stream) {
    try {
      stream.synchronize();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Stream> a_, b_;
};

}  // namespace headrace::test
