// SPDX-License-Identifier: Apache-2.0
// Tells the shared account what the queues must know of jobs. Thread-safe.
#pragma once

#include <string_view>

#include "clientlib/cache/informer.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/speed_tables.h"
#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

class JobHolders {
 public:
  JobHolders(ClusterAccount& account, const kube::Informer& priority_classes)
      : account_(account), priority_classes_(priority_classes) {}

  // With the PriorityClass that the job names.
  void Put(const View& view);
  // As the API server makes its workers.
  void Put(const View& view, std::string_view class_name, const ShapePtr& worker);
  void PutAll(const kube::Informer& jobs);  // As their status says.

 private:
  // Adds what decides the size of the job, if its speed is known by size and nobody else decides it.
  void AddCurve(const View& view, const Sizes& sizes, const ShapePtr& worker, Holder& holder);

  ClusterAccount& account_;
  const kube::Informer& priority_classes_;
  SpeedTables speed_tables_;
};

}  // namespace grus
