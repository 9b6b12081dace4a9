# SPDX-License-Identifier: Apache-2.0
# The front door. Each target is a few lines; what is longer lives in scripts/.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

.PHONY: help setup build test demo demo-trial demo-share demo-interference bench campaign image e2e-horovod cluster-up cluster-down asan tsan fuzz lint format clean

help:  ## List the targets
	@awk -F ':.*## +' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install the Debian packages the build needs
	@scripts/install-packages

build: setup  ## Build everything, optimised, into build/release
	scripts/build release

test:  ## Run every test there is, also with sanitizers and on a real cluster
	@scripts/test

demo: setup  ## Train, lose a node, shrink and grow again, on a local cluster
	scripts/build release grus-manager crdgen
	scripts/demo

demo-trial: setup  ## Measure how many GPUs two trainings are worth, on a local cluster
	scripts/build release grus-manager kubectl-grus
	scripts/demo-trial

demo-share: setup  ## Pods share one GPU and are held to their parts, on a real kubelet; needs root
	scripts/install-packages --real-node
	scripts/build release grus-node-agent kubectl-grus fake-nvml fake-cuda fake-cuda-client fake-cuda-world grus-cuda
	scripts/demo-share

demo-interference: setup  ## Trainings that disturb each other on a GPU are parted, by a stock scheduler
	scripts/build release grus-manager crdgen
	scripts/demo-interference

bench: build  ## Run the benchmarks and compare them with the recorded baselines
	scripts/bench --mpi-operator | scripts/bench-moved bench/baseline/job_storm.txt
	scripts/bench-peers | scripts/bench-moved bench/baseline/peers.txt
	scripts/bench-gangs | scripts/bench-moved bench/baseline/gangs.txt
	scripts/bench-openb | scripts/bench-moved bench/baseline/openb.txt
	scripts/bench-usage --prometheus 3

campaign: setup  ## Play thousands of fault schedules and spec changes in virtual time
	@scripts/campaign

image: setup  ## Build the container image of grus-manager, without Docker, into build/image
	@scripts/image

e2e-horovod: setup  ## Real trainings on a real node, as root; first: scripts/training-image keras, ... torch
	@scripts/e2e-horovod

cluster-up:  ## Start a local Kubernetes with 4 nodes of 8 GPUs each
	tests/cluster/cluster up
	tests/cluster/cluster nodes 4 --gpus 8

cluster-down:  ## Stop it again
	tests/cluster/cluster down

asan:  ## Run the unit tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/test asan

tsan:  ## Run the unit tests with ThreadSanitizer
	@scripts/test tsan

fuzz:  ## Run each fuzz target for five seconds
	@scripts/fuzz

lint:  ## Check format and style, run clang-tidy
	@scripts/install-packages --lint
	scripts/lint

format:  ## Format all C++ files
	@scripts/install-packages --lint
	scripts/format

clean:  ## Remove all build output
	rm -rf build
