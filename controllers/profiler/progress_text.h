// SPDX-License-Identifier: Apache-2.0
// What a job's status says about the progress of its training. Pure functions.
#pragma once

#include <optional>

#include "controllers/telemetry/progress_reader.h"
#include "controllers/telemetry/progress_track.h"
#include "crds/types/elastic_job_status.h"

namespace grus {

// `metric` of `before` is kept: others write it.
api::Progress ProgressOf(const Position& where, const std::optional<Eta>& eta, const api::Progress& before);

// Of a training that has ended, or stands still: without an end to come, and whole if it succeeded.
api::Progress EndedProgress(api::Progress progress, bool has_succeeded);

// Whether a reader would notice the difference: another percent or epoch, an end that moves by 2 % of the time until
// then and half a minute at least, or, where no end is known, a step that is a fifth higher.
bool IsNews(const api::Progress& before, const api::Progress& now);

}  // namespace grus
