#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/sources.h"
#include "headrace/pipeline/sources/fingerprint.h"
#include "headrace/pipeline/sources/no_such_record.h"
#include "headrace/pipeline/sources/streams/made_by_function.h"

namespace headrace {
namespace {

// Records that a custom function makes, each by its number.
class Generator final : public Source {
 public:
  explicit Generator(GeneratorOptions options) : function_(std::move(options.function)) {
    info_.name = std::move(options.name);
    info_.records = options.records;
    info_.fields = std::move(options.fields);
    info_.classes = std::move(options.classes);
    info_.anonymous = options.anonymous || options.fingerprint == 0;
    Fingerprint fingerprint("generator 1");
    fingerprint.add(options.fingerprint).add(info_.records);
    for (const Field& field : info_.fields) fingerprint.add(field);
    for (const std::string& name : info_.classes) fingerprint.add(name);
    info_.fingerprint = fingerprint.value();
  }

  const SourceInfo& info() const noexcept override { return info_; }

  RecordView read(std::uint64_t index, std::vector<std::byte>& scratch) const override {
    if (index >= info_.records) throw no_such_record(info_, index);
    RecordWriter writer(info_.fields, scratch);
    return with_user_code_errors("generator", {.source = info_.name, .record = index}, [&] {
      function_(index, writer);
      return writer.view();
    });
  }

  std::string describe(std::uint64_t index) const override {
    return info_.name + "[" + std::to_string(index) + "]";
  }

 private:
  std::function<void(std::uint64_t, RecordWriter&)> function_;
  SourceInfo info_;
};

}  // namespace

SourcePtr generator(GeneratorOptions options) {
  check_made_by_function("generator", options.name, options.fields, static_cast<bool>(options.function));
  if (options.records >= std::uint64_t{1} << 48) {
    throw ConfigError("generator(" + options.name + "): more records than can be numbered", "at most 2^48 - 1");
  }
  return std::make_shared<Generator>(std::move(options));
}

}  // namespace headrace
