#include "headrace/devices/workers/module/coordinator_service.h"

#include <utility>

namespace headrace {
namespace {

constexpr auto kBeat = std::chrono::milliseconds(250);
constexpr auto kSignOff = std::chrono::seconds(1);

}  // namespace

Watch::Watch(workers::Coordinator::Stub& stub, CallersProof& proof, int rank, std::function<void()> on_failure)
    : proof_(proof), rank_(rank), on_failure_(std::move(on_failure)) {
  now_.set_rank(rank);
  context_.set_wait_for_ready(true);
  stub.async()->Watch(&context_, this);
  AddHold();  // the thread writes, too
  StartRead(&told_);
  StartCall();
  thread_ = std::thread([this] { beat(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    now_.set_leaving(true);
  }
  changed_.notify_all();
  {
    std::unique_lock lock(mutex_);
    if (can_sign_off()) changed_.wait_for(lock, kSignOff, [&] { return done_; });
    if (!done_) {  // there is no coordinator, or it is stopped: not even a beat may leave
      lock.unlock();
      context_.TryCancel();
      lock.lock();
      changed_.wait(lock, [&] { return done_; });
    }
  }
  thread_.join();
}

void Watch::begin_call(std::string call) {
  const std::lock_guard lock(mutex_);
  now_.set_calls(now_.calls() + 1);
  now_.set_call(std::move(call));
}

void Watch::end_call() {
  const std::lock_guard lock(mutex_);
  now_.clear_call();
}

std::int64_t Watch::calls() const {
  const std::lock_guard lock(mutex_);
  return now_.calls();
}

void Watch::set_moment(std::string moment) {
  const std::lock_guard lock(mutex_);
  now_.set_moment(std::move(moment));
}

void Watch::report(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!now_.failure().empty() || failure_) return;
    now_.set_failure(reason);
    urgent_ = true;
  }
  changed_.notify_all();
}

std::optional<workers::Failure> Watch::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<workers::Failure> Watch::wait_for_failure(std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return failure_.has_value(); });
  return failure_;
}

void Watch::beat() {
  std::unique_lock lock(mutex_);
  bool said_goodbye = false;
  while (!broken_ && !said_goodbye) {
    urgent_ = false;
    said_goodbye = leaving_;
    sent_ = now_;
    writing_ = true;
    lock.unlock();
    proof_.sign("beat", sent_);
    StartWrite(&sent_);
    lock.lock();
    changed_.wait(lock, [&] { return !writing_; });
    if (!said_goodbye) changed_.wait_for(lock, kBeat, [&] { return leaving_ || urgent_ || broken_; });
  }
  lock.unlock();
  StartWritesDone();
  RemoveHold();
}

void Watch::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    (ok ? connected_ : broken_) = true;
  }
  changed_.notify_all();
}

void Watch::OnReadDone(bool ok) {
  if (!ok) return;
  note(told_);
  StartRead(&told_);
}

void Watch::OnDone(const grpc::Status&) {
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    lost = !leaving_;
    broken_ = true;
  }
  if (lost) {
    workers::Failure failure;
    failure.set_rank(0);
    failure.set_reason("was lost");
    note(failure);
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void Watch::note(const workers::Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  changed_.notify_all();
  on_failure_();
}

}  // namespace headrace
