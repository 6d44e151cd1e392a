#include "headrace/devices/base/remote/remote_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/remote/whole_answer.h"

namespace headrace::remote {
namespace {

constexpr std::uint64_t kBaseWindow = std::uint64_t{16} << 20;
// What is read and dropped where a server sends the whole file.
constexpr std::uint64_t kMaxSkipped = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxDropped = std::uint64_t{64} << 10;  // of an answer that is no use
constexpr std::chrono::seconds kErrorsCount{1};

// The memory of all ranges of the process, and those that wait for it.
class Memory {
 public:
  void widen(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ += bytes;
  }
  void narrow(std::uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    limit_ -= bytes;
  }
  bool has_room(std::uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    return held_ + bytes <= limit_;
  }
  std::uint64_t limit() const noexcept {
    const std::lock_guard lock(mutex_);
    return limit_;
  }
  std::uint64_t held() const noexcept {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  void charge(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    held_ += bytes;
  }
  void wait_for_room(const std::shared_ptr<FetchedRange>& range) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(range);
    }
    start_waiting();
  }
  void release(std::uint64_t bytes) noexcept {
    {
      const std::lock_guard lock(mutex_);
      held_ -= bytes;
    }
    start_waiting();
  }

 private:
  void start_waiting() noexcept {
    for (;;) {
      std::shared_ptr<FetchedRange> next;
      std::uint64_t before = 0;  // bytes announced earlier and not used yet
      {
        const std::lock_guard lock(mutex_);
        while (!waiting_.empty() && (next = waiting_.front().lock()) == nullptr) waiting_.pop_front();
        if (next == nullptr || held_ + next->size() > limit_) return;
        waiting_.pop_front();
        before = held_;
      }
      try {
        next->start(due_after(before));
      } catch (const std::exception&) {  // no memory: whoever reads it tries again
      }
    }
  }

  mutable std::mutex mutex_;
  std::uint64_t limit_ = kBaseWindow, held_ = 0;
  std::deque<std::weak_ptr<FetchedRange>> waiting_;
};

Memory& memory() {
  static Memory* const one = new Memory;  // never destroyed, as the client
  return *one;
}

struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total;
};

// Parses "bytes 0-499/1234" or "bytes 0-499/*".
std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  const char* at = text.data() + kUnit.size();
  const char* const end = text.data() + text.size();
  const auto number = [&](std::uint64_t& value, char after) {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (after != '\0' && (stop == end || *stop != after))) return false;
    at = after != '\0' ? stop + 1 : stop;
    return true;
  };
  ContentRange range;
  if (!number(range.first, '-') || !number(range.last, '/')) return std::nullopt;
  if (at != end && *at == '*') return range;
  std::uint64_t total = 0;
  if (!number(total, '\0') || at != end) return std::nullopt;
  range.total = total;
  return range;
}

std::string_view without_weakness(std::string_view etag) { return etag.starts_with("W/") ? etag.substr(2) : etag; }

}  // namespace

Window::Window(std::uint64_t bytes) : bytes_(bytes) { memory().widen(bytes); }

Window::~Window() {
  if (bytes_ > 0) memory().narrow(bytes_);
}

bool has_room(std::uint64_t bytes) { return memory().has_room(bytes); }

std::uint64_t window_bytes() noexcept { return memory().limit(); }

std::uint64_t held_bytes() noexcept { return memory().held(); }

std::uint64_t FileVersion::number() const {
  const std::string_view what = etag.empty() ? std::string_view(last_modified) : without_weakness(etag);
  return xxh3(what, size);
}

FetchedRange::~FetchedRange() {
  give_up_claim();
  if (bytes_ != nullptr) memory().release(size());
}

void FetchedRange::get_memory() {
  if (bytes_ != nullptr) return;
  bytes_ = std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(size()));
  memory().charge(size());
}

void FetchedRange::give_up_claim() noexcept {
  if (std::exchange(claimed_, false)) cache_->give_up(place_);
}

// Returns false while it waits for another's fetch.
bool FetchedRange::begin_fetch(std::uint64_t due) {
  const PieceStatus status = cache_ == nullptr ? PieceStatus::kNoRoom : cache_->claim(piece_, place_);
  claimed_ = status == PieceStatus::kClaimed;
  if (status == PieceStatus::kStored) {
    state_ = State::kCached;
    changed_.notify_all();
    return true;
  }
  if (status == PieceStatus::kPending) {
    if (std::exchange(state_, State::kPending) != State::kPending) cache_->watch(shared_from_this());
    return false;
  }
  try {
    get_memory();
    submit(shared_from_this(), due);
  } catch (...) {
    give_up_claim();
    throw;
  }
  state_ = State::kFetching;
  return true;
}

void FetchedRange::start(std::uint64_t due) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kIdle && !cancelled()) begin_fetch(due);
  if (state_ == State::kFetching && !sent_ && due == kNow) expedite(*this);
}

bool FetchedRange::look_again() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    return state_ != State::kPending || cancelled() || begin_fetch(readers.load() > 0 ? kNow : due_after(0));
  } catch (const std::exception&) {  // no memory: tried again
    return false;
  }
}

bool FetchedRange::load() {
  get_memory();
  if (!cache_->load(piece_, place_, {bytes_.get(), static_cast<std::size_t>(size())})) return false;
  received_ = size();
  changed_.notify_all();
  return true;
}

void FetchedRange::store_piece() noexcept {
  const bool stored = cache_->store(piece_, place_, {bytes_.get(), static_cast<std::size_t>(size())});
  std::shared_ptr<std::byte[]> freed;
  {
    const std::lock_guard lock(mutex_);
    claimed_ = false;
    if (!stored) return;
    state_ = State::kCached;
    if (readers.load() > 0) return;
    freed = std::move(bytes_);
    received_ = 0;
  }
  memory().release(size());
}

void FetchedRange::start_when_there_is_room() { memory().wait_for_room(shared_from_this()); }

bool FetchedRange::read(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t wanted = offset - begin_ + into.size();
  while (true) {
    start(kNow);
    std::unique_lock lock(mutex_);
    wait_until(changed_, lock,
               [&] { return received_ >= wanted || error_ != nullptr || state_ == State::kCached; });
    if (received_ >= wanted) {
      const std::shared_ptr<const std::byte[]> bytes = bytes_;
      lock.unlock();  // what was received stays as it is
      std::memcpy(into.data(), bytes.get() + (offset - begin_), into.size());
      return true;
    }
    if (state_ != State::kCached) throw DataError(*error_);
    if (!load()) return false;
  }
}

bool FetchedRange::has_until(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kCached || begin_ + received_ >= offset;
}

bool FetchedRange::is_cached() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kCached;
}

void FetchedRange::drop() noexcept {
  const std::lock_guard lock(mutex_);
  if (readers.load() == 0 && !(claimed_ && sent_)) cancel();
}

bool FetchedRange::is_stale() const {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr && std::chrono::steady_clock::now() - failed_ > kErrorsCount;
}

Asked FetchedRange::asked_here() const {
  Asked asked = file_->asked;
  asked.offset = position();
  return asked;
}

HttpRequest FetchedRange::request() {
  {
    const std::lock_guard lock(mutex_);
    sent_ = true;
  }
  use_ = Use::kNone;
  looked_ = false;
  skipped_ = to_skip_ = 0;
  wrong_.clear();
  HttpRequest request{.url = file_->url, .range = std::pair(position(), end_ - 1), .access = file_->access};
  const bool strong = !file_->etag.empty() && !file_->etag.starts_with("W/");
  if (strong) request.headers.push_back("If-Match: " + file_->etag);
  if (file_->etag.empty() && !file_->last_modified.empty()) {
    request.headers.push_back("If-Unmodified-Since: " + file_->last_modified);
  }
  return request;
}

std::string FetchedRange::difference(const HttpAnswer& answer) const {
  if (!file_->etag.empty() && !answer.etag.empty()) {
    if (without_weakness(answer.etag) == without_weakness(file_->etag)) return {};
    return fmt::format("its ETag was {}, and is {}", file_->etag, answer.etag);
  }
  if (file_->last_modified.empty() || answer.last_modified.empty() ||
      answer.last_modified == file_->last_modified) {
    return {};
  }
  return fmt::format("it was changed at {}, and before at {}", answer.last_modified, file_->last_modified);
}

void FetchedRange::look_at_part(const HttpAnswer& answer) {
  const auto range = parse_content_range(answer.content_range);
  if (!range || range->first != position() || range->last >= end_ || range->last < range->first) {
    wrong_ = fmt::format("bytes {}-{} were asked for, and the answer is '{}'", position(), end_ - 1,
                         answer.content_range);
  } else if (range->total && *range->total != file_->size) {
    refused_ = changed(asked_here(), fmt::format("it had {} bytes, and has {}", file_->size, *range->total));
  } else {
    use_ = Use::kBody;
  }
}

// Of a server that knows no ranges, or not now.
void FetchedRange::look_at_whole(const HttpAnswer& answer) {
  if (answer.length && *answer.length != file_->size) {
    refused_ = changed(asked_here(), fmt::format("it had {} bytes, and has {}", file_->size, *answer.length));
  } else if (position() > kMaxSkipped) {
    refused_ = std::make_shared<const DataError>(
        DataError(ErrorCode::kUnsupported, "the server sends the whole file where a part is asked for",
                  {.source = file_->asked.url, .offset = position()},
                  "read it from a server that knows HTTP ranges, or download it"));
  } else {
    use_ = Use::kBody;
    to_skip_ = position();
  }
}

void FetchedRange::begin(const HttpAnswer& answer) {
  looked_ = true;
  if (answer.status != 200 && answer.status != 206) return;
  if (const std::string how = difference(answer); !how.empty()) {
    refused_ = changed(asked_here(), how);
  } else if (answer.status == 206) {
    look_at_part(answer);
  } else {
    look_at_whole(answer);
  }
}

bool FetchedRange::take(std::span<const std::byte> bytes) {
  if (complete_) return bytes.empty();
  if (use_ == Use::kNone) {  // short ones are read to their end, so that the connection can be used again
    skipped_ += bytes.size();
    return skipped_ <= kMaxDropped;
  }
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(to_skip_ - skipped_, bytes.size()));
  skipped_ += skipped;
  bytes = bytes.subspan(skipped);
  // Only this thread writes it.
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(size() - received_, bytes.size()));
  std::memcpy(bytes_.get() + received_, bytes.data(), count);
  if (count > 0) retries_.progress();
  complete_ = received_ + count == size();
  {
    const std::lock_guard lock(mutex_);
    received_ += count;
    if (complete_ && claimed_ && !cache_->store_soon(shared_from_this())) give_up_claim();
  }
  changed_.notify_all();
  return count == bytes.size();
}

void FetchedRange::fail(Refusal error) {
  {
    const std::lock_guard lock(mutex_);
    give_up_claim();
    error_ = std::move(error);
    failed_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
}

std::optional<std::chrono::nanoseconds> FetchedRange::end(const HttpAnswer& answer) {
  if (complete_) return std::nullopt;
  if (!looked_ && answer.trouble.empty()) begin(answer);
  HttpAnswer judged = answer;
  if (refused_ == nullptr && (answer.status == 412 || answer.status == 416) && answer.trouble.empty()) {
    refused_ =
        changed(asked_here(), answer.status == 412 ? "the server has another version" : "it has become shorter");
  }
  if (refused_ != nullptr) {
    forget_version(file_->asked.url);
    fail(refused_);
    return std::nullopt;
  }
  const bool success = answer.status == 200 || answer.status == 206;
  if (success && answer.trouble.empty()) judged.trouble = wrong_.empty() ? "the answer is too short" : wrong_;
  if (success && !wrong_.empty()) judged.trouble = wrong_;
  if (success) judged.may_pass = judged.may_pass || answer.trouble.empty() || !wrong_.empty();
  const bool again = judged.trouble.empty() ? status_may_pass(answer.status) : judged.may_pass;
  std::optional<std::chrono::nanoseconds> pause;
  if (again) pause = retries_.next_pause(answer.retry_after);
  if (!pause) fail(refusal(asked_here(), judged, again ? retries_.given_up() : ""));
  return pause;
}

}  // namespace headrace::remote
