#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/archives/byte_input.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/origin.h"
#include "headrace/pipeline/sources/records/web_samples.h"
#include "headrace/pipeline/sources/sample_table.h"
#include "headrace/pipeline/sources/streamed_source.h"

namespace headrace {
namespace {

// Reads what another program writes, as it arrives.
class PipeInput final : public ByteInput {
 public:
  // Waits until a named pipe has a writer.
  explicit PipeInput(const std::filesystem::path& path);

  // Unknown: no bound.
  std::uint64_t max_left() const noexcept override { return std::numeric_limits<std::uint64_t>::max() >> 2; }

 private:
  std::size_t read_some(std::span<std::byte> into) override;

  Pipe pipe_;
  std::vector<std::byte> buffer_;
  std::size_t first_ = 0, end_ = 0;  // of the unread bytes in the buffer
};

constexpr std::size_t kPipeBytes = std::size_t{64} << 10;  // what Linux keeps of a pipe

PipeInput::PipeInput(const std::filesystem::path& path)
    : ByteInput(path.string()), pipe_(Pipe::open(path)), buffer_(kPipeBytes) {}

std::size_t PipeInput::read_some(std::span<std::byte> into) {
  if (first_ == end_) {
    if (into.size() >= buffer_.size()) return pipe_.read_some(into);
    first_ = 0;
    end_ = pipe_.read_some(buffer_);
  }
  const std::size_t count = std::min(into.size(), end_ - first_);
  std::memcpy(into.data(), buffer_.data() + first_, count);
  first_ += count;
  return count;
}

// The samples as they come through the pipe.
class WebStream final : public RecordStream {
 public:
  WebStream(const std::filesystem::path& pipe, std::uint64_t first, std::uint64_t max_image_bytes)
      : name_(pipe.string()),
        max_image_bytes_(max_image_bytes),
        files_(open_tar(std::make_unique<PipeInput>(pipe))) {
    std::vector<std::byte> passed;
    guard([&] { member_ = files_->next(); });
    while (first > 0 && read_sample(passed)) --first;
  }

  std::optional<RecordView> next(std::vector<std::byte>& buffer) override {
    const std::optional<WebSample> sample = read_sample(buffer);
    if (!sample) return std::nullopt;
    if (const std::string& fault = sample->fault_with_label(); !fault.empty()) {
      throw DataError(ErrorCode::kDataCorrupt, fault, {.source = name_, .offset = sample->place.offset},
                      "each image needs key.cls, or a \"label\" in key.json, right beside it; classes in folders "
                      "are read from a "
                      "file, not through a pipe");
    }
    const std::size_t image = sample->bytes.size();
    buffer.resize(image + sizeof sample->label);
    std::memcpy(buffer.data() + image, &sample->label, sizeof sample->label);
    return RecordView{.fields = {std::span(buffer).first(image), std::span(buffer).subspan(image)}};
  }

 private:
  std::optional<WebSample> read_sample(std::vector<std::byte>& buffer) {
    std::optional<WebSample> sample;
    std::string too_large;
    const auto keep = [&](ArchiveFiles& files, const ArchiveFile& member) -> std::span<const std::byte> {
      if (member.place.size > max_image_bytes_) {
        too_large =
            fmt::format("'{}' has {} bytes; {} may be kept", member.path, member.place.size, max_image_bytes_);
        return {};
      }
      buffer.resize(static_cast<std::size_t>(member.place.size));
      files.read(buffer);
      return buffer;
    };
    guard([&] { sample = read_next_sample(*files_, keep, WebMembers(), member_); });
    if (!sample && empty_) throw Error(ErrorCode::kDataCorrupt, "it ends without a sample", kWanted);
    empty_ = false;
    if (sample && !too_large.empty()) sample->fault = too_large;
    return sample;
  }

  // A fault of the archive itself ends the stream: nothing after it can be found.
  template <typename Read>
  void guard(const Read& read) const {
    try {
      read();
    } catch (const DataError& error) {
      throw Error(error.code(), error.message(), kWanted);
    }
  }

  static constexpr const char* kWanted =
      "a pipe must give a plain tar in WebDataset's naming; unpack it on the way: zstd -dc, gzip -dc";

  std::string name_;
  std::uint64_t max_image_bytes_;
  std::unique_ptr<ArchiveFiles> files_;
  std::optional<ArchiveFile> member_;  // the next one
  bool empty_ = true;                  // no sample yet
};

class WebStreamSource final : public StreamedSource {
 public:
  WebStreamSource(std::filesystem::path pipe, WebStreamOptions options)
      : pipe_(std::move(pipe)), max_image_bytes_(options.max_image_bytes) {
    info_.name = pipe_.string();
    info_.fields = labelled_image_fields();
    info_.classes = std::move(options.classes);
    info_.label_count = options.label_count;
    Fingerprint fingerprint("web stream 1");
    fingerprint.add(options.fingerprint);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fingerprint = fingerprint.value();
  }

  std::unique_ptr<RecordStream> open_stream(std::uint64_t first) const override {
    if (opened_.exchange(true)) {
      throw ConfigError(info_.name + " has already been read: a pipe can be read only once",
                        "open the source anew, with a writer that begins again");
    }
    return std::make_unique<WebStream>(pipe_, first, max_image_bytes_);
  }

 private:
  std::filesystem::path pipe_;
  std::uint64_t max_image_bytes_;
  mutable std::atomic<bool> opened_{false};
};

}  // namespace

SourcePtr web_stream(const std::filesystem::path& pipe, WebStreamOptions options) {
  return opened_by(WebStreamCall{{pipe, options}}, std::make_shared<WebStreamSource>(pipe, options));
}

}  // namespace headrace
