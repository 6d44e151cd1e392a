#include "headrace/pipeline/engine/bad_records.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {
namespace {

// The largest count that is no larger share of the whole. Shares are compared, not counts: 0.29 x 100 is below 29
// in floating point, 29 / 100 is 0.29.
std::uint64_t largest_count(double share, std::uint64_t size) {
  if (!(share >= 0 && share <= 1)) {
    throw ConfigError(named("ErrorPolicy::max_bad_share", fmt::format("{}", share)) + " is no share",
                      "give 0 to 1");
  }
  const auto fits = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(size) <= share;
  };
  auto count = static_cast<std::uint64_t>(share * static_cast<double>(size));
  while (count > 0 && !fits(count)) --count;
  while (count < size && fits(count + 1)) ++count;
  return count;
}

}  // namespace

BadRecordLimit::BadRecordLimit(const ErrorPolicy& policy, std::uint64_t size, std::string whole)
    : whole_(std::move(whole)),
      share_(policy.max_bad_share),
      quarantine_(policy.quarantine.string()),
      max_bad_(largest_count(share_, size)) {}

void BadRecordLimit::refuse(const BadRecord& last) const {
  raise(fmt::format("{} of the {} {} bad, {} allows {}", max_bad_ + 1, whole_, max_bad_ == 0 ? "is" : "are",
                    named("ErrorPolicy::max_bad_share", fmt::format("{:g}", share_)),
                    max_bad_ == 0 ? "none" : fmt::format("{}", max_bad_)),
        last, advice("allow more with {}", named("ErrorPolicy::max_bad_share")));
}

void BadRecordLimit::refuse_all(const BadRecord& last) const {
  raise(fmt::format("not one of the {} could be used", whole_), last, "");
}

void BadRecordLimit::raise(const std::string& what, const BadRecord& last, const std::string& remedy) const {
  const std::string list = quarantine_.empty()
                               ? advice("list the bad ones with {}", named("ErrorPolicy::quarantine"))
                               : "the bad ones are listed in " + quarantine_;
  throw DataError(last.code, what + "; the last: " + describe(last),
                  {.source = last.source, .record = last.record, .offset = last.offset},
                  joined({list, joined({"mend them or leave them out", remedy})}, "; "));
}

Quarantine::Quarantine(const std::filesystem::path& path) : path_(path) { append_to_file(path_, {}); }

void Quarantine::add(const BadRecord& bad, OnError action, const std::optional<BatchPosition>& at) {
  append(bad, at, to_string(action), false);
}

void Quarantine::add_warning(const BadRecord& warned, const BatchPosition& at) {
  append(warned, at, "used", true);
}

void Quarantine::append(const BadRecord& bad, const std::optional<BatchPosition>& at, const char* action,
                        bool warning) {
  if (!listed_.insert(bad.record).second) return;
  nlohmann::ordered_json line = {{"source", bad.source}, {"record", bad.record}, {"name", bad.name}};
  if (bad.offset != DataLocation::kUnknown) line["offset"] = bad.offset;
  line["operation"] = bad.operation;
  line["cause"] = bad.cause;
  line["code"] = to_string(bad.code);
  if (at) line["epoch"] = at->epoch;
  if (at) line["step"] = at->step;
  line["action"] = action;
  if (warning) line["warning"] = true;
  if (bad.substitute) line["substitute"] = *bad.substitute;
  // Names of files need not be UTF-8.
  append_to_file(path_, line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace headrace
