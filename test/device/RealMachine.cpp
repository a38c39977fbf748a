//===- RealMachine.cpp - The tests on the GPU that is there ---------------===//

#include "PackageModels.h"

void sinkstate::test::prepareMachine() {}
