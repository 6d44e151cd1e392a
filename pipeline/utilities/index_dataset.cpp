#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/sources/index_set.h"

namespace headrace {
namespace {

void refuse_unkept() {
  const char* const folder = std::getenv("HEADRACE_INDEX_FOLDER");
  if (folder == nullptr || std::string_view(folder) != "off") return;
  throw ConfigError("HEADRACE_INDEX_FOLDER is off: no index is kept", "unset it, or name a folder");
}

}  // namespace

IndexResult index_dataset(const std::filesystem::path& data, const IndexOptions& options) {
  refuse_unkept();
  IndexResult result;
  const IndexCollector collector;
  const SourcePtr first = open_source(data, options.split.value_or(Split::kTrain), options.source);
  result.records = first->info().records;
  result.reading = describe_reading(*first);
  if (!options.split) {
    try {
      result.records += open_source(data, Split::kTest, options.source)->info().records;
    } catch (const ConfigError&) {  // there is no other split
    }
  }
  result.shards = collector.files();
  result.bytes = collector.bytes();
  if (result.shards == 0) {
    throw ConfigError(
        fmt::format(
            "{}: nothing here has an index: they are kept of plain tars and TFRecord files, behind URLs whose "
            "server tells versions apart, or of 32 MiB and more",
            data.string()),
        "smaller files and other formats open without one");
  }
  if (!options.to.empty()) collector.write(options.to);
  return result;
}

}  // namespace headrace
