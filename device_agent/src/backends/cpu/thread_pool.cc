#include "thread_pool.h"

#include <algorithm>

#include "../../affinity.h"

namespace pocketfarm::cpu {

ThreadPool::ThreadPool(int threads, Life life, std::vector<int> cores)
    : threads_(threads), life_(life), cores_(std::move(cores)), scratch_(static_cast<size_t>(threads)) {
  if (life_ == Life::kept)
    for (int i = cores_.empty() ? 1 : 0; i < threads; ++i) start(i, &ThreadPool::work);
}

void ThreadPool::start(int thread, void (ThreadPool::*body)(int)) {
  workers_.emplace_back([this, thread, body] {
    if (!cores_.empty()) pin_this_thread(cores_[static_cast<size_t>(thread) % cores_.size()]);
    (this->*body)(thread);
  });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_tasks(int thread) {
  for (int64_t i; (i = next_.fetch_add(1)) < count_;) (*task_)(i, thread);
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    lock.unlock();
    take_tasks(thread);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::each(int64_t count, const std::function<void(int64_t, int)>& task) {
  if (cores_.empty() && (threads_ == 1 || count <= 1)) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  if (life_ == Life::per_call) {
    task_ = &task;
    count_ = count;
    next_ = 0;
    return each_with_new_threads();
  }
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    count_ = count;
    next_ = 0;
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  wake_.notify_all();
  if (cores_.empty()) take_tasks(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

void ThreadPool::each_with_new_threads() {
  for (int i = cores_.empty() ? 1 : 0; i < threads_; ++i) start(i, &ThreadPool::take_tasks);
  if (cores_.empty()) take_tasks(0);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void ThreadPool::ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& task) {
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, int64_t{4} * threads());
  each(parts, [&](int64_t i, int) { task(count * i / parts, count * (i + 1) / parts); });
}

float* ThreadPool::scratch(int thread, size_t floats) {
  std::vector<float>& own = scratch_[static_cast<size_t>(thread)];
  if (own.size() < floats) own.resize(floats);
  return own.data();
}

}  // namespace pocketfarm::cpu
