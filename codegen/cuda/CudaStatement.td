//===- CudaStatement.td - What an operation is in CUDA C++ ------*- tablegen -*-===//

#ifndef SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT
#define SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT

include "mlir/IR/OpBase.td"

def CudaStatement : OpInterface<"CudaStatement"> {
  let cppNamespace = "::sinkstate::cuda";
  let description = [{
    An operation that the CUDA printer knows. The dialects do not: models are attached
    to their operations from outside (CudaStatement.cpp), one for each. Scalar arithmetic
    has none, as it is printed within the statements that use it.
  }];
  let methods = [
    InterfaceMethod<
      [{Emits an error if the operation, of a kind that is printed, cannot be: a vector
        that no lane holds, a loop whose step is not known.}],
      "::llvm::LogicalResult", "checkCuda", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return ::mlir::success();">,
    InterfaceMethod<
      [{Prints the statements of the operation. The default prints nothing, for what is
        printed with others: the frame of a kernel, what a loop yields.}],
      "void", "printCuda", (ins "::sinkstate::cuda::KernelPrinter &":$printer),
      /*methodBody=*/"", /*defaultImplementation=*/"(void)printer;">,
    InterfaceMethod<
      [{The device header, such as "ss/tile.cuh", with what is printed; or nothing.}],
      "std::string", "getCudaHeader", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return {};">,
  ];
}

#endif // SINKSTATE_CODEGEN_CUDA_CUDASTATEMENT
