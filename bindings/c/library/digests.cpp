#include <algorithm>

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_digest_create(const hr_loader* loader, hr_digest** digest) {
  return guarded(__func__, [&] {
    hr_digest*& result = given(digest, "digest");
    const auto& devices = given(loader, "loader").devices;
    result = new hr_digest{.devices = devices, .digest = headrace::StreamDigest(*devices)};
  });
}

hr_status hr_digest_next(hr_digest* digest, hr_loader* loader, hr_batch_digest* batch, bool* end) {
  return guarded(__func__, [&] {
    hr_digest& of = given(digest, "digest");
    hr_loader& from = given(loader, "loader");
    bool& at_end = given(end, "end");
    if (from.devices != of.devices) {
      throw headrace::ConfigError("hr_digest_next: the digest was created for a loader on other devices",
                                  "create one for this loader");
    }
    if (batch != nullptr) headrace::c::check_size(batch->size, "hr_batch_digest", "HR_BATCH_DIGEST_INIT");
    const std::optional<headrace::BatchDigest> next = of.digest.next(from.loader);
    at_end = !next;
    if (!next || batch == nullptr) return;
    hr_batch_digest answer = HR_BATCH_DIGEST_INIT;
    answer.epoch = next->epoch;
    answer.step = next->step;
    answer.examples = next->examples;
    next->sha256.copy(answer.sha256, sizeof answer.sha256 - 1);
    headrace::c::write_struct(batch, answer, "hr_batch_digest", "HR_BATCH_DIGEST_INIT");
  });
}

hr_status hr_digest_finish(hr_digest* digest, char** sha256) {
  return guarded(__func__, [&] {
    char*& result = given(sha256, "sha256");
    result = headrace::c::owned_text(given(digest, "digest").digest.finish());
  });
}

void hr_digest_free(hr_digest* digest) { delete digest; }
