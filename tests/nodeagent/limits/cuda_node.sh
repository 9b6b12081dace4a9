# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For scripts to source: GPUs of the fake CUDA driver for containers of a real node, and programs that use them.
: "${bin:?}" "${work:?}"

# add_cuda_programs ROOT: a program that uses CUDA, the fake driver, and the C library that they need, in an image's files.
# With that library's libdl.so.2 and libpthread.so.0, which libgrus-cuda.so needs, and in Debian's package are.
add_cuda_programs() {
  local file
  mkdir -p "$1/usr/bin" "$1/usr/lib"
  cp "$bin/fake-cuda-client" "$1/usr/bin/"
  cp "$bin/fake-cuda/libcuda.so.1" "$1/usr/lib/"
  while read -r file; do
    mkdir -p "$1${file%/*}"
    cp -L "$file" "$1$file"
  done < <(ldd "$bin/fake-cuda-client" "$bin/fake-cuda/libcuda.so.1" "$bin/cuda/libgrus-cuda.so" | grep -oE '/[^ ]+\.so[^ ]*' \
    | grep -vE 'fake-cuda|libgrus' | sort -u)
}

# make_gpus GIB...: GPUs of so many GiB in $work/cuda, until end_gpus. Their UUIDs are in cuda_gpus.
cuda_gpus=()
make_gpus() {
  local uuid
  mkdir -p "$work/cuda"
  coproc cuda_world { exec "$bin/fake-cuda-world" "$work/cuda/world" "$@"; }
  for ((i = 0; i < $#; ++i)); do
    read -r -t 10 uuid <&"${cuda_world[0]}" || return 1
    cuda_gpus+=("$uuid")
  done
}
end_gpus() { [[ -z ${cuda_world_PID:-} ]] || kill "$cuda_world_PID" 2>/dev/null; }
used_of_gpu() { # used_of_gpu INDEX: MiB, by the driver.
  local bytes
  echo "$1" >&"${cuda_world[1]}"
  read -r -t 10 bytes <&"${cuda_world[0]}" && echo $((bytes >> 20))
}

# with_cuda: the pod on standard input, whose containers find the driver, and run fake-cuda-client by commands.
with_cuda() {
  jq -c --arg folder "$work/cuda" '.spec.volumes = [{name: "cuda", hostPath: {path: $folder}}]
    | .spec.containers[] |= (.volumeMounts = [{name: "cuda", mountPath: $folder}]
        | .env = [{name: "GRUS_FAKE_CUDA", value: "\($folder)/world"}])'
}
