#include "thread_pool.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "device/affinity.h"
#include "system/thread.h"

namespace pocketfarm::cpu {
namespace {

constexpr std::chrono::microseconds kSpin{50};  // the calls of an inference follow within this; waking one takes as long
constexpr int kPausesPerLook = 32;              // at the clock

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Threads look out for work before they sleep, unless they would take a core from one that has some.
ThreadPool::ThreadPool(int threads, Life life, std::vector<int> cores)
    : threads_(threads), life_(life), cores_(std::move(cores)), spins_(cores_.empty() && threads <= usable_cores()),
      shares_(new Share[static_cast<size_t>(threads)]), scratch_(static_cast<size_t>(threads)) {
  if (life_ == Life::kept)
    for (int i = cores_.empty() ? 1 : 0; i < threads; ++i) start(i, &ThreadPool::work);
}

void ThreadPool::start(int thread, void (ThreadPool::*body)(int)) {
  const auto begun = life_ == Life::in_order ? std::make_shared<std::promise<void>>() : nullptr;
  workers_.push_back(start_thread([this, thread, body, begun] {
    if (begun) begun->set_value();
    if (!cores_.empty()) pin_this_thread(cores_[static_cast<size_t>(thread) % cores_.size()]);
    (this->*body)(thread);
  }));
  if (begun) begun->get_future().wait();
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// Whether the condition came true before it was time to sleep.
template <typename Condition>
bool ThreadPool::spin_until(const Condition& condition) const {
  if (condition()) return true;
  if (!spins_) return false;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      pause();
      if (condition()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// A worker that leaves a job tells the caller, who may have come to wait.
template <typename Condition>
void ThreadPool::wait_until(const Condition& condition) {
  if (spin_until(condition)) return;
  std::unique_lock lock(mutex_);
  waiting_ = true;
  done_.wait(lock, condition);
  waiting_ = false;
}

// Neighbours go to one thread, which often wrote in the call before what they read.
void ThreadPool::share_out(int64_t count) {
  for (int i = 0; i < threads_; ++i) {
    shares_[static_cast<size_t>(i)].next = count * i / threads_;
    shares_[static_cast<size_t>(i)].end = count * (i + 1) / threads_;
  }
}

void ThreadPool::take_tasks(int thread) {
  or_end([&] {
    for (int other = 0; other < threads_; ++other) {
      Share& share = shares_[static_cast<size_t>((thread + other) % threads_)];
      for (int64_t i; share.next < share.end && (i = share.next.fetch_add(1)) < share.end;) (*task_)(i, thread);
    }
  });
}

bool ThreadPool::all_taken() const {
  return std::all_of(shares_.get(), shares_.get() + threads_, [](const Share& share) { return share.next >= share.end; });
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  const auto called = [&] { return stop_ || jobs_ != seen; };
  while (true) {
    if (!spin_until(called)) {
      std::unique_lock lock(mutex_);
      ++asleep_;
      wake_.wait(lock, called);
      --asleep_;
    }
    if (stop_) return;
    seen = jobs_;
    ++active_;
    if (open_) take_tasks(thread);
    if (--active_ == 0 && waiting_) {
      const std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

void ThreadPool::each(int64_t count, const std::function<void(int64_t, int)>& task, int64_t work) {
  if (cores_.empty() && (threads_for(work) == 1 || count <= 1)) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  task_ = &task;
  share_out(count);
  if (life_ != Life::kept) return each_with_new_threads();
  open_ = true;
  ++jobs_;
  if (asleep_ > 0) {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  if (cores_.empty()) take_tasks(0);
  wait_until([&] { return active_ == 0 && all_taken(); });
  open_ = false;  // who comes now stays out; who just came in found no task, and is waited for
  wait_until([&] { return active_ == 0; });
}

void ThreadPool::each_with_new_threads() {
  for (int i = cores_.empty() ? 1 : 0; i < threads_; ++i) start(i, &ThreadPool::take_tasks);
  if (cores_.empty()) take_tasks(0);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& task) {
  const int64_t most = threads_ > 1 ? int64_t{4} * threads_ : 1;
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, most);
  each(parts, [&](int64_t i, int) { task(count * i / parts, count * (i + 1) / parts); });
}

float* ThreadPool::scratch(int thread, size_t floats) {
  std::vector<float>& own = scratch_[static_cast<size_t>(thread)];
  if (own.size() < floats) own.resize(floats);
  return own.data();
}

}  // namespace pocketfarm::cpu
