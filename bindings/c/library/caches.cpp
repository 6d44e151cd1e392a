#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_cache_memory(uint64_t budget, hr_cache** cache) {
  return guarded(__func__, [&] { given(cache, "cache") = new hr_cache{headrace::memory(budget)}; });
}

hr_status hr_cache_disk(const char* folder, uint64_t budget, uint64_t segment_bytes, hr_cache** cache) {
  return guarded(__func__, [&] {
    headrace::DiskCacheOptions options{.budget_bytes = budget};
    if (segment_bytes != 0) options.segment_bytes = segment_bytes;
    const std::string at = &given(folder, "folder");
    given(cache, "cache") = new hr_cache{headrace::disk(at, options)};
  });
}

hr_status hr_cache_read_stats(const hr_cache* cache, hr_cache_stats* stats) {
  return guarded(__func__, [&] {
    const headrace::CacheCounters counters = given(cache, "cache").cache->counters();
    const hr_cache_stats answer{.size = sizeof answer,
                                .hits = counters.hits,
                                .misses = counters.misses,
                                .records = counters.records,
                                .bytes = counters.bytes,
                                .refused = counters.refused,
                                .bad = counters.bad};
    headrace::c::write_struct(stats, answer, "hr_cache_stats", "HR_CACHE_STATS_INIT");
  });
}

hr_status hr_cache_trouble(const hr_cache* cache, char** text) {
  return guarded(__func__, [&] {
    char*& result = given(text, "text");
    result = headrace::c::owned_text(given(cache, "cache").cache->trouble());
  });
}

void hr_cache_free(hr_cache* cache) { delete cache; }
