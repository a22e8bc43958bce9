#include "backends/open.h"

namespace pocketfarm {
namespace {

class AnewBackend final : public Backend {
 public:
  AnewBackend(std::unique_ptr<Backend> first, Opener open)
      : facts_(first->facts()), threads_(first->threads()), open_(std::move(open)), backend_(std::move(first)) {}

  const ApiFacts& facts() const override { return facts_; }
  int threads() const override { return threads_; }
  Status prepare(const Bundle& bundle, SetupLog& log) override {
    bundle_ = &bundle;
    return backend_->prepare(bundle, log);
  }
  Status write(const Buffer& buffer, const void* data, uint64_t bytes) override {
    const auto* begin = static_cast<const std::byte*>(data);
    written_[&buffer].assign(begin, begin + bytes);
    return backend_->write(buffer, data, bytes);
  }
  Status read(const Buffer& buffer, void* data, uint64_t bytes) override { return backend_->read(buffer, data, bytes); }
  Status run() override { return infer({}, 0); }
  Status run_batches(const Stage&, int64_t) override {
    return Error{Code::usage, "--create-per-frame is not for plans that train"};
  }
  Status run_stream(int count, const Frames& frames) override {
    for (int64_t frame = 0; frame < count; ++frame)
      if (auto error = infer(frames, frame % frames.count)) return error;
    return kOk;
  }
  Status run_profiled(size_t begin, size_t end, std::vector<int64_t>& step_ns) override {
    return backend_->run_profiled(begin, end, step_ns);
  }
  uint64_t device_bytes() const override { return backend_->device_bytes(); }

 private:
  Status infer(const Frames& frames, int64_t frame) {
    SetupLog quiet;
    backend_.reset();
    auto made = open_(quiet);
    if (!made) return made.error();
    backend_ = std::move(*made);
    if (auto error = backend_->prepare(*bundle_, quiet)) return error;
    for (const auto& [buffer, content] : written_)
      if (auto error = backend_->write(*buffer, content.data(), content.size())) return error;
    for (const Frames::Item& item : frames.inputs)
      if (frames.moved)
        if (auto error = backend_->write(*item.buffer, item.frame(frame), item.bytes)) return error;
    if (auto error = backend_->run()) return error;
    for (const Frames::Item& item : frames.outputs)
      if (frames.moved)
        if (auto error = backend_->read(*item.buffer, item.frame(frame), item.bytes)) return error;
    return kOk;
  }

  const ApiFacts facts_;
  const int threads_;
  const Opener open_;
  const Bundle* bundle_ = nullptr;
  std::unique_ptr<Backend> backend_;
  std::map<const Buffer*, std::vector<std::byte>> written_;
};

}  // namespace

std::unique_ptr<Backend> make_anew(std::unique_ptr<Backend> first, Opener open) {
  return std::make_unique<AnewBackend>(std::move(first), std::move(open));
}

}  // namespace pocketfarm
