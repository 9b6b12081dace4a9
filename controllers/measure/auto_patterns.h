// SPDX-License-Identifier: Apache-2.0
// Reads the speed from a line in one of the formats that training programs commonly print.
//
// There is no list of programs. A line is read by the words around its numbers: a counter is a number after
// "step", "iter" and the like, or one with a total ("340/1000"); a speed is a number with a unit like "it/s",
// "ms/step" or "img/sec per GPU", before or behind it; "time: 0.3" may be the time of a step. That covers
// Keras, tqdm and programs that draw their bars with it, Hugging Face Trainer, PyTorch Lightning, DeepSpeed,
// Megatron-LM, MMEngine, Horovod's examples, fairseq, torchvision's references, TensorFlow's estimators and
// benchmarks, Caffe, ultralytics, timm, detectron2, NVIDIA's DeepLearningExamples, nanoGPT, MXNet,
// PaddlePaddle, PyTorch Ignite, fastai, and programs that are written like them.
//
// Lines about evaluation, loading and saving are recognised by the words in front of their numbers; they have no
// readings. Pure function; time and memory are linear in the length of the line.
#pragma once

#include <string_view>

#include "controllers/measure/reading.h"

namespace grus {

LineReadings ReadLine(std::string_view text);

}  // namespace grus
