#include "headrace/pipeline/plan/content_sample.h"

#include <algorithm>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

constexpr std::size_t kMinHashedFields =
    4;  // keys of caches on disk depend on it: fields that are not there count

std::vector<std::uint64_t> sampled_records(const SourceInfo& info) {
  std::vector<std::uint64_t> sampled;
  const std::uint64_t count = std::min(info.records, kSampledRecords);
  // Exact for all counts: the remainder's share is added, so nothing is multiplied by a large number.
  const std::uint64_t apart = count > 1 ? (info.records - 1) / (count - 1) : 0;
  const std::uint64_t rest = count > 1 ? (info.records - 1) % (count - 1) : 0;
  for (std::uint64_t i = 0; i < count; ++i)
    sampled.push_back(i * apart + (count > 1 ? i * rest / (count - 1) : 0));
  std::uint64_t begin = 0;
  for (const std::uint64_t end : info.file_ends) {
    if (end > begin) sampled.insert(sampled.end(), {begin, end - 1});
    begin = end;
  }
  std::ranges::sort(sampled);
  sampled.erase(std::ranges::unique(sampled).begin(), sampled.end());
  return sampled;
}

}  // namespace

std::optional<std::uint64_t> sample_content(const Source& source) {
  if (!source.info().revision && !lacks_identity(source.info())) return std::nullopt;
  std::uint64_t hash = kSampledRecords;
  std::vector<std::byte> scratch;
  const std::vector<std::uint64_t> records = sampled_records(source.info());
  source.will_read(records);
  for (const std::uint64_t record : records) {
    hash = mix_seed(hash, record);
    try {
      const RecordView view = source.read(record, scratch);
      const std::size_t fields = std::max(source.info().fields.size(), kMinHashedFields);
      for (std::size_t i = 0; i < fields; ++i) hash = xxh3(view.fields[i], hash);
    } catch (const DataError& error) {
      hash = mix_seed(hash, static_cast<std::uint64_t>(error.code()));
    }
  }
  return hash;
}

}  // namespace headrace
