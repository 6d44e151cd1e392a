#include <fmt/format.h>

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/streams/made_by_function.h"
#include "headrace/pipeline/sources/streams/streamed_source.h"

namespace headrace {
namespace {

// The records that a custom function gives.
class CalledStream final : public RecordStream {
 public:
  CalledStream(const SourceInfo& info, std::function<bool(RecordWriter&)> function)
      : info_(info), function_(std::move(function)) {}

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    RecordWriter writer(info_.fields, buffer);
    if (!function_(writer)) return std::nullopt;
    return writer.view();
  }

 private:
  const SourceInfo& info_;  // of the source, which outlives its streams
  std::function<bool(RecordWriter&)> function_;
};

class CalledSource final : public StreamedSource {
 public:
  explicit CalledSource(StreamOptions options) : open_(std::move(options.open)) {
    info_.name = std::move(options.name);
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.label_count = options.label_count;
    Fingerprint fingerprint("stream 1");
    fingerprint.add(options.fingerprint);
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fingerprint = fingerprint.value();
  }

  std::unique_ptr<RecordStream> open_stream(std::uint64_t first) const override {
    std::function<bool(RecordWriter&)> function = open_(first);
    if (!function) throw ConfigError(fmt::format("stream({}): open({}) gave no function", info_.name, first));
    return std::make_unique<CalledStream>(info_, std::move(function));
  }

 private:
  std::function<std::function<bool(RecordWriter&)>(std::uint64_t)> open_;
};

}  // namespace

SourcePtr record_stream(StreamOptions options) {
  check_made_by_function("stream", options.name, options.fields, static_cast<bool>(options.open));
  return std::make_shared<CalledSource>(std::move(options));
}

}  // namespace headrace
