"""Operators of the domain `ai.onnx.ml`, as scikit-learn's exporter writes them, in general operations."""

from __future__ import annotations

from collections.abc import Callable

from kernels.frontend.onnx.context import Context, OnnxNode

from . import encoders, linear, trees, vectors
from .tree_ensemble import tree_ensemble

DOMAIN = "ai.onnx.ml"
CLASSICAL: dict[str, Callable[[OnnxNode, Context], None]] = {
    "ArrayFeatureExtractor": linear.array_feature_extractor,
    "Binarizer": encoders.binarizer,
    "Imputer": encoders.imputer,
    "LabelEncoder": encoders.label_encoder,
    "LinearClassifier": linear.linear_classifier,
    "LinearRegressor": linear.linear_regressor,
    "Normalizer": linear.normalizer,
    "OneHotEncoder": encoders.one_hot_encoder,
    "SVMClassifier": vectors.svm_classifier,
    "SVMRegressor": vectors.svm_regressor,
    "Scaler": linear.scaler,
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": trees.classifier,
    "TreeEnsembleRegressor": trees.regressor,
    "ZipMap": linear.zip_map,
}
