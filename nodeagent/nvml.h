// SPDX-License-Identifier: Apache-2.0
// The GPUs of NVIDIA, by the driver's own management library, which is loaded when it is needed.
//
// Drivers that lack a newer entry point are asked by the older one. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nodeagent/gpu_library.h"

namespace grus {

class NvmlLibrary final : public GpuLibrary {
 public:
  static constexpr char kFile[] = "libnvidia-ml.so.1";

  // `file`: as dlopen() takes it.
  explicit NvmlLibrary(std::string file = kFile);
  ~NvmlLibrary() override;

  kube::Result<std::vector<Gpu>> Open() override;
  std::size_t left_out() const override;
  kube::Result<GpuSample> Sample(std::size_t gpu) override;
  kube::Result<PcieRates> Pcie(std::size_t gpu) override;
  kube::Result<std::vector<GpuProcess>> Processes(std::size_t gpu) override;
  std::vector<Xid> NewXids() override;

 private:
  class Session;
  const std::string file_;
  std::unique_ptr<Session> session_;  // Null: not connected.
};

}  // namespace grus
