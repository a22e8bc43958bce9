#include "thread_pool.h"

#include <algorithm>

namespace pocketfarm::cpu {

ThreadPool::ThreadPool(int threads) : scratch_(static_cast<size_t>(threads)) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
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
  if (workers_.empty() || count <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
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
  take_tasks(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
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
