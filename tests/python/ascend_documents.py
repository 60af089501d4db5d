"""Prototypes of CANN's functions as its public documents have them, in short: what the stand-in checks calls against.

Each line: function, then its parameters up to workspaceSize and executor.
    T const aclTensor*    O aclTensor* written    R aclTensor* read and written    ? after one: it may be null
    S const aclScalar*    I const aclIntArray*    B const aclBoolArray*            L const aclTensorList*
    q int64_t    i int    c int8_t    b bool    d aclDataType
Read in: the pages of each function (gitcode.com/cann/ops-math and ops-nn, */docs/aclnn*.md; hiascend.com, "aolapi") and their headers.
"""

PROTOTYPES = """
aclnnAdd                              T T S O
aclnnAdds                             T S S O
aclnnSub                              T T S O
aclnnSubs                             T S S O
aclnnRsubs                            T S S O
aclnnMul                              T T O
aclnnMuls                             T S O
aclnnDiv                              T T O
aclnnDivs                             T S O
aclnnDivMod                           T T i O
aclnnPowTensorTensor                  T T O
aclnnPowTensorScalar                  T S O
aclnnPowScalarTensor                  S T O
aclnnMaximum                          T T O
aclnnMinimum                          T T O
aclnnEqTensor                         T T O
aclnnNeTensor                         T T O
aclnnLtTensor                         T T O
aclnnLeTensor                         T T O
aclnnGtTensor                         T T O
aclnnGeTensor                         T T O
aclnnEqScalar                         T S O
aclnnNeScalar                         T S O
aclnnLtScalar                         T S O
aclnnLeScalar                         T S O
aclnnGtScalar                         T S O
aclnnGeScalar                         T S O
aclnnLogicalAnd                       T T O
aclnnLogicalOr                        T T O
aclnnLogicalNot                       T O
aclnnNeg                              T O
aclnnAbs                              T O
aclnnExp                              T O
aclnnLog                              T O
aclnnSqrt                             T O
aclnnRsqrt                            T O
aclnnReciprocal                       T O
aclnnTanh                             T O
aclnnErf                              T O
aclnnSigmoid                          T O
aclnnFloor                            T O
aclnnCeil                             T O
aclnnRound                            T O
aclnnTrunc                            T O
aclnnIsFinite                         T O
aclnnIsInf                            T O
aclnnSin                              T O
aclnnCos                              T O
aclnnTan                              T O
aclnnAtan                             T O
aclnnLog1p                            T O
aclnnExpm1                            T O
aclnnSign                             T O
aclnnInplaceCopy                      R T
aclnnCast                             T d O
aclnnSWhere                           T T T O
aclnnFmodTensor                       T T O
aclnnFmodScalar                       T S O
aclnnRemainderTensorTensor            T T O
aclnnRemainderTensorScalar            T S O
aclnnRemainderScalarTensor            S T O
aclnnBitwiseNot                       T O
aclnnBitwiseAndTensor                 T T O
aclnnBitwiseOrTensor                  T T O
aclnnBitwiseXorTensor                 T T O
aclnnLeftShift                        T T O
aclnnRightShift                       T T O
aclnnReduceSum                        T I b d O
aclnnAny                              T I b O
aclnnAll                              T I b O
aclnnAmax                             T I b O
aclnnAmin                             T I b O
aclnnMean                             T I b d O
aclnnProdDim                          T q b d O
aclnnMatmul                           T T O c
aclnnConvolution                      T T T? I I I b I q O c
aclnnConvolutionBackward              T T T I? I I I b I i B c O? O? O?
aclnnMaxPool2dWithIndices             T I I I I b O O
aclnnMaxPool2dWithIndicesBackward     T T T I I I I b O
aclnnAvgPool2d                        T I I I b b q c O
aclnnAvgPool2dBackward                T T I I I b b q c O
aclnnCat                              L q O
aclnnFlip                             T I O
aclnnInplaceZero                      R
aclnnInplaceFillScalar                R S
aclnnIndexSelect                      T q T O
aclnnIndexAdd                         T q T T S O
aclnnGather                           T q T O
aclnnScatter                          T q T T q O
aclnnScatterAdd                       T q T T O
aclnnOneHot                           T i T T q O
aclnnConstantPadNd                    T I S O
aclnnCumsumV2                         T q b b O
aclnnArange                           S S S O
aclnnArgMax                           T q b O
aclnnArgMin                           T q b O
aclnnSort                             T b q b O O
"""
FUNCTIONS: dict[str, list[str]] = {line.split()[0]: line.split()[1:] for line in PROTOTYPES.split("\n") if line}
