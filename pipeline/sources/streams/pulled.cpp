#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/streams/made_by_function.h"

namespace headrace {
namespace {

// Records that a custom function gave one after another, kept in memory.
class Pulled final : public Source {
 public:
  explicit Pulled(PullOptions options) {
    info_.name = std::move(options.name);
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.resident = true;
    Fingerprint fingerprint("pulled 1");
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    std::vector<std::byte> scratch;
    for (;; ++info_.records) {
      RecordWriter writer(info_.fields, scratch);
      if (!pull(options.function, writer)) break;
      keep(writer, options.memory_limit, fingerprint);
    }
    if (info_.records == 0) throw DataError(ErrorCode::kDataCorrupt, "gave no record", {.source = info_.name});
    info_.fingerprint = fingerprint.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& /*scratch*/) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    RecordView view;
    for (std::size_t i = 0; i < info_.fields.size(); ++i) {
      view.fields[i] = pieces_[static_cast<std::size_t>(index) * info_.fields.size() + i];
    }
    return view;
  }

  std::string describe(std::uint64_t index) const override { return fmt::format("{}[{}]", info_.name, index); }

 private:
  bool pull(const std::function<bool(RecordWriter&)>& function, RecordWriter& writer) const {
    return with_user_code_errors("pulled", {.source = info_.name, .record = info_.records},
                                 [&] { return function(writer); });
  }

  void keep(const RecordWriter& writer, std::uint64_t memory_limit, Fingerprint& fingerprint) {
    const RecordView view = with_user_code_errors("pulled", {.source = info_.name, .record = info_.records},
                                                  [&] { return writer.view(); });
    for (std::size_t i = 0; i < info_.fields.size(); ++i) {
      const std::span<const std::byte> bytes = view.fields[i];
      kept_ += bytes.size() + sizeof bytes;
      if (kept_ > memory_limit) {
        throw DataError(ErrorCode::kOutOfMemory,
                        fmt::format("gave more than the {} bytes that may be kept", memory_limit),
                        {.source = info_.name, .record = info_.records},
                        joined({advice("raise {}", named("PullOptions::memory_limit")),
                                advice("give the records by number: {}", named("generator()"))}));
      }
      const std::span<std::byte> place = slabs_.allocate(bytes.size());
      std::ranges::copy(bytes, place.begin());
      pieces_.emplace_back(place);
      fingerprint.add(bytes);
    }
  }

  SourceInfo info_;
  ByteSlabs slabs_;
  std::vector<std::span<const std::byte>> pieces_;  // of all records, field by field
  std::uint64_t kept_ = 0;
};

}  // namespace

SourcePtr pulled(PullOptions options) {
  check_made_by_function("pulled", options.name, options.fields, static_cast<bool>(options.function));
  return std::make_shared<Pulled>(std::move(options));
}

}  // namespace headrace
