// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "controllers/kubectl/command_line.h"

int main(int argc, char** argv) { return grus::RunCommand(argc, argv, std::cout, std::cerr); }
