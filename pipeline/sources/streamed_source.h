// The common base of all streams: they are read only by open_stream().
#pragma once

#include <string>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/source.h"

namespace headrace {

// Derived constructors fill in `info_`: name, fields, fingerprint.
class StreamedSource : public Source {
 public:
  StreamedSource() {
    info_.records = kUnknownRecords;
    info_.streamed = true;
  }

  const SourceInfo& info() const noexcept final { return info_; }
  RecordView read(std::uint64_t index, std::vector<std::byte>& /*scratch*/) const final {
    throw DataError(ErrorCode::kUnsupported, "is a stream, whose records cannot be read by number",
                    {.source = info_.name, .record = index},
                    "run it by a Loader, which asks for one after another");
  }
  std::string describe(std::uint64_t index) const override {
    return info_.name + "[" + std::to_string(index) + "]";
  }

 protected:
  SourceInfo info_;
};

}  // namespace headrace
