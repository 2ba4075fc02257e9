-- Run once, when the volume is new: Airflow's database is made by the image, the results have one beside it.
CREATE DATABASE results;
